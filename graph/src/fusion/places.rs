use std::collections::{BTreeSet, HashMap};

use super::kernel::KernelTooLarge;
use crate::FusionProgram;

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
