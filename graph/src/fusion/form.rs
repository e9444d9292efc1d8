use std::collections::HashSet;

use super::{
    bits::is_set,
    kernel::{Kernel, KernelLimits, KernelTooLarge},
    places::check_places,
    program::FusionProgram,
};

/// What walking through a program needs, which many configurations share.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Per node of the entry computation, whether a kernel reads it or it is the root.
    needed: Vec<bool>,
    /// Per node, the number of the last kernel that has it as a member.
    member_of: Vec<u32>,
    kernels: u32,
    /// The members of the current kernel, ascending, the root last.
    members: Vec<u32>,
}

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
        let form = |members: &[u32]| self.kernel(members, limits);
        self.walk(fused, &mut Walk::default(), limits, form, |kernel| kernel)
    }

    /// Calls `form` with the members of each kernel that a configuration runs, and returns the results by root.
    pub(super) fn walk<T>(
        &self,
        fused: &[u8],
        walk: &mut Walk,
        limits: &KernelLimits,
        mut form: impl FnMut(&[u32]) -> Result<T, KernelTooLarge>,
        kernel: impl Fn(&T) -> &Kernel,
    ) -> Result<Vec<T>, KernelTooLarge> {
        walk.begin(self);
        let mut formed = Vec::new();
        // Operands stand before their users, so every user of a node is known when the node is reached.
        for node in (self.first..=self.root).rev() {
            if !walk.needed[self.position(node)] {
                continue;
            }
            if self.node(node).is_free {
                self.operands(node).iter().for_each(|&operand| walk.needed[self.position(operand)] = true);
                continue;
            }
            self.find_members(node, fused, usize::from(limits.nodes), walk);
            let one = form(&walk.members)?;
            kernel(&one).inputs.iter().for_each(|&input| walk.needed[self.position(input)] = true);
            formed.push(one);
        }
        formed.reverse();
        Ok(formed)
    }

    /// Finds the root and everything that is fused into it, directly or through other nodes. Stops after more than `most`
    /// nodes.
    fn find_members(&self, root: u32, fused: &[u8], most: usize, walk: &mut Walk) {
        walk.kernels += 1;
        let (number, mut next) = (walk.kernels, 0);
        let Walk { member_of, members, .. } = walk;
        members.clear();
        members.push(root);
        while self.node(root).is_fusible && next < members.len() && members.len() <= most {
            for &operand in self.operands(members[next]) {
                let last = &mut member_of[self.position(operand)];
                if *last != number && self.is_fused(operand, fused) {
                    *last = number;
                    members.push(operand);
                }
            }
            next += 1;
        }
        members.sort_unstable();
    }

    /// Forms the kernel of these members, ascending.
    pub(super) fn kernel(&self, members: &[u32], limits: &KernelLimits) -> Result<Kernel, KernelTooLarge> {
        let (limit, root) = (usize::from(limits.nodes), members.last().copied().unwrap_or(self.root));
        let mut kernel = Kernel {
            root,
            called: self.callees.reached(members, limit),
            inputs: Vec::new(),
            body: Vec::with_capacity(members.len()),
        };
        let mut known: HashSet<u32> = members.iter().copied().collect();
        for &member in members {
            for &operand in self.operands(member).iter().filter(|&&operand| known.insert(operand)) {
                let constant = self.node(operand).is_scalar_constant;
                if constant { &mut kernel.body } else { &mut kernel.inputs }.push(operand);
            }
            kernel.body.push(member);
        }
        if kernel.len() > limit {
            return Err(KernelTooLarge::Nodes { root, limit });
        }
        check_places(self, members, limits.places)?;
        Ok(kernel)
    }

    fn is_fused(&self, node: u32, fused: &[u8]) -> bool {
        self.slot(node).is_some_and(|slot| is_set(fused, slot))
    }
}

impl Walk {
    /// Starts at the root of a program.
    fn begin(&mut self, program: &FusionProgram) {
        self.needed.clear();
        self.needed.resize(program.len(), false);
        self.needed[program.position(program.root)] = true;
        // The numbers of kernels go on from configuration to configuration, and start again long before they overflow.
        if self.member_of.len() != program.len() || self.kernels > u32::MAX / 2 {
            self.kernels = 0;
            self.member_of.clear();
            self.member_of.resize(program.len(), 0);
        }
    }
}
