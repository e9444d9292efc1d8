use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    body::Body,
    kernel::{Kernel, KernelLimits, KernelTooLarge},
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
            for &operand in self.operands(member) {
                // Members before this one may have read it.
                if !known.insert(operand) {
                    continue;
                }
                if self.node(operand).is_scalar_constant {
                    kernel.body.push(operand);
                } else {
                    kernel.inputs.push(operand);
                }
            }
            // Constants of one element that it is the first to read are in front of it.
            kernel.body.push(member);
        }
        if kernel.len() > limit {
            return Err(KernelTooLarge::Nodes { root, limit });
        }
        check_places(self, &members, limits.places)?;
        Ok(kernel)
    }
}

/// Number of nodes between two pauses.
const ROOTS: usize = 64;

/// Checks at how many places of the generated code each member of a kernel is computed. `members` are ascending, and
/// the last one is the root.
///
/// Code is generated per index: an elementwise user computes its operand at its own index, which other users may share;
/// any other user computes it at a new index for each place at which it is computed itself.
pub(super) fn check_places(
    program: &FusionProgram,
    members: &[u32],
    limit: usize,
) -> Result<(), KernelTooLarge> {
    let Some(&root) = members.last() else {
        return Ok(());
    };
    let mut places = Places::of(members, root);
    // Users stand behind their operands, so the places of a node are complete when the loop reaches
    // it.
    for &node in members.iter().rev() {
        let here = places.of_member.remove(&node).unwrap_or_default();
        // The sets can double with every node, so this check also bounds the work of the loop.
        if here.len() > limit {
            return Err(KernelTooLarge::Places { root, node, limit });
        }
        let operands: BTreeSet<u32> = program.operands(node).iter().copied().collect();
        for operand in operands {
            places.add(operand, &here, program.node(node).is_elementwise);
        }
    }
    Ok(())
}

/// The places at which members are computed.
struct Places {
    /// The places of the members that the loop has not reached.
    of_member: HashMap<u32, BTreeSet<usize>>,
    /// Number of places.
    count: usize,
}

impl Places {
    /// Returns the one place of the root. The other members have none.
    fn of(members: &[u32], root: u32) -> Self {
        let empty = members.iter().map(|&member| (member, BTreeSet::new()));
        let mut of_member: HashMap<u32, BTreeSet<usize>> = empty.collect();
        of_member.entry(root).or_default().insert(0);
        Self {
            of_member,
            count: 1,
        }
    }

    /// Adds the places at which a user that is computed `here` computes its operand, if that is a
    /// member.
    fn add(&mut self, operand: u32, here: &BTreeSet<usize>, is_elementwise: bool) {
        let Some(there) = self.of_member.get_mut(&operand) else {
            return;
        };
        if is_elementwise {
            there.extend(here);
        } else {
            there.extend(self.count..self.count + here.len());
            self.count += here.len();
        }
    }
}
