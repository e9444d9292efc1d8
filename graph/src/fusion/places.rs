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
    let mut places: HashMap<u32, BTreeSet<usize>> = members
        .iter()
        .map(|&member| (member, BTreeSet::new()))
        .collect();
    places.entry(root).or_default().insert(0);
    let mut fresh = 1;
    for &node in members.iter().rev() {
        let here = places.remove(&node).unwrap_or_default();
        if here.len() > limit {
            return Err(KernelTooLarge::Places { root, node, limit });
        }
        let operands: BTreeSet<u32> = program.operands(node).iter().copied().collect();
        for operand in operands {
            let Some(there) = places.get_mut(&operand) else {
                continue;
            };
            if program.node(node).is_elementwise {
                there.extend(&here);
            } else {
                there.extend(fresh..fresh + here.len());
                fresh += here.len();
            }
        }
    }
    Ok(())
}
