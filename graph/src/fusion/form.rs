use std::collections::HashSet;

use super::{
    body::Body,
    kernel::{Kernel, KernelLimits, KernelTooLarge},
    places::check_places,
};
use crate::{FusionProgram, pace};

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
    pub fn kernels(
        &self,
        fused: &[u8],
        limits: &KernelLimits,
    ) -> Result<Vec<Kernel>, KernelTooLarge> {
        let mut kernels: Vec<Kernel> = Vec::new();
        self.for_each_root(|root, needed| {
            let fused_operands = self.fused_operands(root, fused);
            let members = Body::members(self, &fused_operands, fused, usize::from(limits.nodes));
            let kernel = self.kernel(&members, root, limits)?;
            self.mark(&kernel.inputs, needed);
            kernels.push(kernel);
            Ok(())
        })?;
        // Kernels are formed from the last root backwards.
        kernels.reverse();
        Ok(kernels)
    }

    /// Marks nodes of the entry computation as needed.
    pub(super) fn mark(&self, nodes: &[u32], needed: &mut [bool]) {
        for &node in nodes {
            needed[self.position(node)] = true;
        }
    }

    /// Calls `form` for the root of each kernel, the last one first. `form` marks the nodes of the entry computation that
    /// the kernel reads.
    pub(super) fn for_each_root(
        &self,
        mut form: impl FnMut(u32, &mut [bool]) -> Result<(), KernelTooLarge>,
    ) -> Result<(), KernelTooLarge> {
        let mut needed = vec![false; self.len()];
        needed[self.position(self.root)] = true;
        // Operands stand before their users, so every user of a node is known when the node is reached.
        for node in pace::in_steps(ROOTS, (self.first..=self.root).rev()) {
            if !needed[self.position(node)] {
                continue;
            }
            if self.node(node).is_free {
                // It is no kernel, but what it passes on must be written by one.
                self.mark(self.operands(node), &mut needed);
            } else {
                form(node, &mut needed)?;
            }
        }
        Ok(())
    }

    /// Forms the kernel of a root and what is fused into it, ascending.
    pub(super) fn kernel(
        &self,
        fused: &[u32],
        root: u32,
        limits: &KernelLimits,
    ) -> Result<Kernel, KernelTooLarge> {
        let limit = usize::from(limits.nodes);
        let mut members = fused.to_vec();
        members.push(root);
        let mut kernel = Kernel {
            root,
            called: self.callees.reached(&members, limit),
            inputs: Vec::new(),
            body: Vec::with_capacity(members.len()),
        };
        let mut known: HashSet<u32> = members.iter().copied().collect();
        for &member in &members {
            self.add_operands(member, &mut known, &mut kernel);
            // Constants of one element that it is the first to read are in front of it.
            kernel.body.push(member);
        }
        if kernel.len() > limit {
            return Err(KernelTooLarge::Nodes { root, limit });
        }
        check_places(self, &members, limits.places)?;
        Ok(kernel)
    }

    /// Adds the operands of a member that no member before it has read.
    fn add_operands(&self, member: u32, known: &mut HashSet<u32>, kernel: &mut Kernel) {
        for &operand in self.operands(member) {
            if !known.insert(operand) {
                continue;
            }
            if self.node(operand).is_scalar_constant {
                kernel.body.push(operand);
            } else {
                kernel.inputs.push(operand);
            }
        }
    }
}

/// Number of nodes between two pauses.
const ROOTS: usize = 64;
