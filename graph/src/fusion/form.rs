use std::collections::HashSet;

use super::{
    kernel::{Kernel, KernelLimits, KernelTooLarge},
    places::check_places,
    program::FusionProgram,
};

impl FusionProgram {
    /// Returns the kernels that a configuration runs, by root. Bit i of `fused`, counted from the lowest bit of the
    /// first byte, is set if slot i is fused.
    ///
    /// # Errors
    ///
    /// Returns the first kernel that exceeds the limits, counted from the end of the program.
    ///
    /// # Panics
    ///
    /// Panics if `fused` has fewer bits than the program has slots.
    pub fn kernels(&self, fused: &[u8], limits: &KernelLimits) -> Result<Vec<Kernel>, KernelTooLarge> {
        let (mut kernels, mut waiting) = (Vec::new(), vec![self.root]);
        let mut reached = HashSet::from([self.root]);
        while let Some(node) = waiting.pop() {
            if self.node(node).is_free {
                let operands = self.operands(node).iter().copied();
                waiting.extend(operands.filter(|&operand| reached.insert(operand)));
                continue;
            }
            let kernel = self.kernel(node, fused, limits)?;
            waiting.extend(kernel.inputs.iter().copied().filter(|&input| reached.insert(input)));
            kernels.push(kernel);
        }
        kernels.sort_unstable_by_key(|kernel| kernel.root);
        Ok(kernels)
    }

    /// Returns the kernel that writes `root`.
    fn kernel(&self, root: u32, fused: &[u8], limits: &KernelLimits) -> Result<Kernel, KernelTooLarge> {
        let limit = usize::from(limits.nodes);
        let members = self.members(root, fused, limit);
        let mut kernel = Kernel {
            root,
            called: self.callees.reached(&members, limit),
            inputs: Vec::new(),
            body: Vec::with_capacity(members.len()),
        };
        let mut known: HashSet<u32> = members.iter().copied().collect();
        for &member in &members {
            for &operand in self.operands(member).iter().filter(|&&operand| known.insert(operand)) {
                let constant = self.node(operand).is_scalar_constant;
                if constant { &mut kernel.body } else { &mut kernel.inputs }.push(operand);
            }
            kernel.body.push(member);
        }
        if kernel.len() > limit {
            return Err(KernelTooLarge::Nodes { root, limit });
        }
        check_places(self, &members, limits.places)?;
        Ok(kernel)
    }

    /// Returns the root and everything that is fused into it, directly or through other nodes, ascending. Stops after
    /// more than `most` nodes.
    fn members(&self, root: u32, fused: &[u8], most: usize) -> Vec<u32> {
        let (mut members, mut next) = (vec![root], 0);
        let mut known = HashSet::from([root]);
        while self.node(root).is_fusible && next < members.len() && members.len() <= most {
            for &operand in self.operands(members[next]) {
                if self.is_fused(operand, fused) && known.insert(operand) {
                    members.push(operand);
                }
            }
            next += 1;
        }
        members.sort_unstable();
        members
    }

    fn is_fused(&self, node: u32, fused: &[u8]) -> bool {
        self.slot(node).is_some_and(|slot| fused[slot / 8] >> (slot % 8) & 1 == 1)
    }
}
