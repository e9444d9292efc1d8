//! Checks the kernels of a module that is prepared for the choice of fusions.

use std::collections::HashSet;

use hlorank_graph::{FusionProgram, Graph, KernelLimits, KernelTooLarge};

/// Limits that are small enough for small inputs to reach them.
const LIMITS: KernelLimits = KernelLimits {
    nodes: 40,
    places: 4,
};

/// Checks the kernels if no slot is fused, and if every one is. Returns the kernel that exceeds the limits.
pub(crate) fn check_kernels(program: &FusionProgram, graph: &Graph) -> Result<(), KernelTooLarge> {
    for byte in [0, 0xff] {
        let fused = vec![byte; program.slots().len().div_ceil(8)];
        let kernels = program.kernels(&fused, &LIMITS)?;
        assert!(
            kernels.is_sorted_by(|one, next| one.root < next.root),
            "two kernels write a node"
        );
        for kernel in kernels {
            let segment = kernel.segment(graph);
            assert_eq!(segment.len(), kernel.len());
            assert!(
                segment.len() <= usize::from(LIMITS.nodes),
                "{} nodes",
                segment.len()
            );
            let inputs: HashSet<&u32> = kernel.inputs.iter().collect();
            assert!(
                kernel.body.iter().all(|node| !inputs.contains(node)),
                "an input is computed"
            );
        }
    }
    Ok(())
}
