use std::ops::Range;

use hlorank_graph::{HloModule, Kernel, KernelLimits, Limits, Task};

use crate::fusion::{ENTRY, SOFTMAX, bits, program};

// Nodes of the first reducer, and of the entry computation.
const MAXIMUM: Range<u32> = 0..3;
const X: u32 = ENTRY;
const LOW: u32 = ENTRY + 1;
const TOP: u32 = ENTRY + 2;
const WIDE: u32 = ENTRY + 3;
const LESS: u32 = ENTRY + 4;
const POWER: u32 = ENTRY + 5;
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
    let top = Kernel {
        root: TOP,
        called: vec![MAXIMUM],
        inputs: vec![X],
        body: vec![LOW, TOP],
    };
    let product = Kernel {
        root: PRODUCT,
        called: vec![],
        inputs: vec![SHARE, W],
        body: vec![PRODUCT],
    };
    assert_eq!([&found[0], &found[7]], [&top, &product]);
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
    assert!(identity.slots().is_empty());
    let kernels = identity.kernels(&[], &KernelLimits::default());
    assert_eq!(kernels, Ok(vec![]));
}

#[test]
fn equal_kernels_of_different_modules_have_one_digest() {
    let digests = |text: &str, fused: &[usize]| {
        let module = HloModule::read_text(text, &Limits::default()).unwrap();
        let graph = module.into_graph(Task::Tile, vec![]).unwrap();
        let kernels = program(text)
            .unwrap()
            .kernels(&bits(fused), &KernelLimits::default());
        let kernels = kernels.unwrap().into_iter();
        kernels
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
