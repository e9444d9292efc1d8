use std::ops::Range;

use hlorank_graph::{HloModule, Kernel, KernelLimits, Limits, Task};

use crate::fusion::{ENTRY, SOFTMAX, bits, program};

// Nodes of the reducers, and of the entry computation.
const MAXIMUM: Range<u32> = 0..3;
const SUM: Range<u32> = 3..6;
const X: u32 = ENTRY;
const LOW: u32 = ENTRY + 1;
const TOP: u32 = ENTRY + 2;
const WIDE: u32 = ENTRY + 3;
const LESS: u32 = ENTRY + 4;
const POWER: u32 = ENTRY + 5;
const ZERO: u32 = ENTRY + 6;
const TOTAL: u32 = ENTRY + 7;
const OVER: u32 = ENTRY + 8;
const SHARE: u32 = ENTRY + 9;
const W: u32 = ENTRY + 11;
const PRODUCT: u32 = ENTRY + 12;

fn kernels(fused: &[usize]) -> Vec<Kernel> {
    program(SOFTMAX)
        .unwrap()
        .kernels(&bits(fused), &KernelLimits::default())
        .unwrap()
}

fn roots(fused: &[usize]) -> Vec<u32> {
    kernels(fused).iter().map(|kernel| kernel.root).collect()
}

#[test]
fn slots_are_fusible_nodes_with_a_fusible_user() {
    let slots = program(SOFTMAX).unwrap().slots().to_vec();
    assert_eq!(
        slots,
        [TOP, WIDE, LESS, POWER, TOTAL, OVER, SHARE],
        "neither `unread`, `product` nor `result`"
    );
}

#[test]
fn without_fused_slots_every_node_is_a_kernel() {
    let found = kernels(&[]);
    let roots: Vec<u32> = found.iter().map(|kernel| kernel.root).collect();
    assert_eq!(
        roots,
        [TOP, WIDE, LESS, POWER, TOTAL, OVER, SHARE, PRODUCT],
        "nothing reads `unread`"
    );
    assert_eq!(
        found[0],
        Kernel {
            root: TOP,
            called: vec![MAXIMUM],
            inputs: vec![X],
            body: vec![LOW, TOP]
        }
    );
    assert_eq!(
        found[7],
        Kernel {
            root: PRODUCT,
            called: vec![],
            inputs: vec![SHARE, W],
            body: vec![PRODUCT]
        }
    );
}

#[test]
fn a_node_with_several_users_is_computed_in_the_kernel_of_each() {
    // Slots in order: top, wide, less, power, total, over, share. `top` and `total` are written.
    let found = kernels(&[1, 2, 3, 5]);
    let computed: Vec<(u32, &[u32], &[u32])> = found
        .iter()
        .map(|kernel| (kernel.root, &kernel.inputs[..], &kernel.body[..]))
        .collect();
    assert_eq!(
        computed,
        [
            (TOP, &[X][..], &[LOW, TOP][..]),
            (TOTAL, &[TOP, X], &[WIDE, LESS, POWER, ZERO, TOTAL]),
            (SHARE, &[TOP, X, TOTAL], &[WIDE, LESS, POWER, OVER, SHARE]),
            (PRODUCT, &[SHARE, W], &[PRODUCT]),
        ]
    );
    assert_eq!(found[1].called, [SUM], "the sum, and not the maximum");
}

#[test]
fn a_node_that_another_kind_of_node_reads_is_written_though_it_is_fused() {
    assert_eq!(
        roots(&[6]),
        roots(&[]),
        "the product and the result read `share`"
    );
    assert_eq!(roots(&[0, 1, 2, 3, 4, 5]), [SHARE, PRODUCT]);
}

#[test]
fn a_program_without_computation_has_no_kernels() {
    let identity = program("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }").unwrap();
    assert_eq!(
        (
            identity.slots(),
            identity.kernels(&[], &KernelLimits::default())
        ),
        (&[][..], Ok(vec![]))
    );
}

#[test]
fn equal_kernels_of_different_modules_have_one_digest() {
    let digests = |text: &str, fused: &[usize]| {
        let module = HloModule::read_text(text, &Limits::default()).unwrap();
        let program = hlorank_graph::FusionProgram::new(&module).unwrap();
        let kernels = program
            .kernels(&bits(fused), &KernelLimits::default())
            .unwrap();
        let graph = module.into_graph(Task::Tile, vec![]).unwrap();
        kernels
            .iter()
            .map(|kernel| kernel.segment(&graph).digest)
            .collect::<Vec<_>>()
    };
    let shape = |text: &str, name: &str| {
        format!(
            "HloModule {name}\nENTRY {name} {{ {text} ROOT {name} = f32[4] exponential({name}1) }}"
        )
    };
    let short = shape("a = f32[4] parameter(0) b1 = f32[4] negate(a)", "b");
    let long = shape(
        "y = f32[4] parameter(0) z = f32[4] tanh(y) c1 = f32[4] negate(z)",
        "c",
    );
    assert_eq!(digests(&short, &[0])[0], digests(&long, &[1])[1]);
    assert_ne!(digests(&short, &[0])[0], digests(&long, &[0, 1])[0]);
}
