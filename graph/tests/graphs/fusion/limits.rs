use hlorank_graph::{KernelLimits, KernelTooLarge};

use crate::fusion::{ENTRY, SOFTMAX, bits, program};

const SHARE: u32 = ENTRY + 9;

/// Every slot but `share`, which is written whatever its bit: one kernel computes the softmax.
const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];

fn outcome(limits: KernelLimits) -> Result<usize, KernelTooLarge> {
    program(SOFTMAX)
        .unwrap()
        .kernels(&bits(&ALL), &limits)
        .map(|kernels| kernels.len())
}

#[test]
fn parameters_constants_and_called_computations_count_as_nodes() {
    let nodes = |nodes| {
        outcome(KernelLimits {
            nodes,
            ..KernelLimits::default()
        })
    };
    // The input, two constants, seven operations, and two reducers of three nodes.
    assert_eq!(nodes(16), Ok(2));
    assert_eq!(
        nodes(15),
        Err(KernelTooLarge::Nodes {
            root: SHARE,
            limit: 15
        })
    );
}

#[test]
fn a_node_is_computed_at_a_place_of_its_own_for_every_index() {
    let places = |places| {
        outcome(KernelLimits {
            places,
            ..KernelLimits::default()
        })
    };
    // `power` is computed for its own element, and for all elements of the sum.
    assert_eq!(places(2), Ok(2));
    let refused = places(1).unwrap_err();
    assert_eq!(
        refused,
        KernelTooLarge::Places {
            root: SHARE,
            node: ENTRY + 5,
            limit: 1
        }
    );
    assert!(
        refused
            .to_string()
            .contains("computes node 11 at more than 1 places"),
        "{refused}"
    );
}

#[test]
fn a_tower_of_broken_sharing_is_refused_before_it_grows() {
    // Every level reads the one before at two shifted indices, so 40 levels are 2^40 places.
    let level = |number: usize| {
        let before = number - 1;
        format!(
            "l{number} = f32[8] slice(s{before}), slice={{[0:8]}}\nr{number} = f32[8] reverse(s{before}), dimensions={{0}}\n\
             s{number} = f32[8] add(l{number}, r{number})\n"
        )
    };
    let levels: String = (1..41).map(level).collect();
    let text = format!(
        "HloModule tower\nENTRY e {{\n s0 = f32[8] parameter(0)\n{levels} ROOT t = f32[8] negate(s40)\n}}"
    );
    let tower = program(&text).unwrap();
    let all = vec![0xff; tower.slots().len().div_ceil(8)];
    let refused = tower.kernels(
        &all,
        &KernelLimits {
            nodes: 512,
            places: 15,
        },
    );
    assert!(
        matches!(refused, Err(KernelTooLarge::Places { limit: 15, .. })),
        "{refused:?}"
    );
    let unfused = tower.kernels(&vec![0; all.len()], &KernelLimits::default());
    assert_eq!(unfused.unwrap().len(), 121);
}
