//! The kernels that are scored are those that the Python client compiles and measures.

use std::fs;

use hlorank_graph::{FusionProgram, HloModule, Kernel, KernelLimits, Limits};

use crate::fusion::fixtures;

#[test]
fn kernels_are_those_that_are_measured() {
    let mut checked = 0;
    for kernels in fixtures("txt") {
        let module = kernels.with_extension("").with_extension("hlo_module.pb");
        let expected = fs::read_to_string(&kernels).unwrap();
        checked += check(&expected, &fs::read(module).unwrap());
    }
    assert!(checked > 800, "{checked} kernels");
}

/// Checks the kernels of each configuration, and returns how many there are.
fn check(expected: &str, module: &[u8]) -> usize {
    let module = HloModule::read(module, &Limits::default()).unwrap();
    let program = FusionProgram::new(&module).unwrap();
    let configurations = expected.split("fused ").skip(1);
    let counts = configurations.map(|configuration| {
        let (bits, kernels) = configuration.split_once('\n').unwrap();
        let bits: Vec<u8> = (0..bits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&bits[at..at + 2], 16).unwrap())
            .collect();
        let found = program.kernels(&bits, &KernelLimits::default()).unwrap();
        let lines: Vec<String> = found.iter().map(|kernel| line(kernel, &module)).collect();
        assert_eq!(lines, kernels.lines().collect::<Vec<_>>());
        lines.len()
    });
    counts.sum()
}

/// Writes a kernel as the files do, without the constants that it copies.
fn line(kernel: &Kernel, module: &HloModule<'_>) -> String {
    let computed = kernel
        .body
        .iter()
        .filter(|&&node| module.describe(node).unwrap().opcode != "constant");
    let words = computed.map(ToString::to_string).chain(["<".to_owned()]);
    words
        .chain(kernel.inputs.iter().map(ToString::to_string))
        .collect::<Vec<_>>()
        .join(" ")
}
