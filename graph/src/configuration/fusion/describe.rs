use super::FusionBatch;
use crate::configuration::count::append_nodes;

/// Describes a fusion in a few words; `slots` holds the node of each slot. Names the nodes that are written if they are
/// fewer than those that are fused.
pub(super) fn describe(batch: &FusionBatch, config: usize, slots: &[u32]) -> String {
    let (fused, written): (Vec<_>, Vec<_>) = slots
        .iter()
        .enumerate()
        .partition(|(slot, _)| batch.is_fused(config, *slot));
    let mut text = format!("{} of {} nodes fused", fused.len(), slots.len());
    // If nearly all nodes are fused, the few that are not say more than the first of the others.
    let (named, nodes) = if written.len() < fused.len() {
        (", not ", written)
    } else {
        (": ", fused)
    };
    let nodes = nodes.into_iter().map(|(_, node)| node.to_string());
    append_nodes(&mut text, named, nodes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn the_shorter_list_of_nodes_is_shown() {
        let bits = [
            vec![true, false, false],
            vec![true, true, false],
            vec![true; 3],
        ];
        let batch = FusionBatch::from_bits(3, &bits, &Limits::default()).unwrap();
        let text = |config| describe(&batch, config, &[7, 8, 9]);
        assert_eq!(text(0), "1 of 3 nodes fused: 7");
        assert_eq!(text(1), "2 of 3 nodes fused, not 9");
        assert_eq!(text(2), "3 of 3 nodes fused");
    }

    #[test]
    fn many_nodes_are_cut_short() {
        let nodes: Vec<u32> = (1000..1100).collect();
        let bits = (0..100).map(|slot| slot % 2 == 0).collect();
        let batch = FusionBatch::from_bits(100, &[bits], &Limits::default()).unwrap();
        let text = describe(&batch, 0, &nodes);
        assert!(text.ends_with(", …") && text.len() < 100, "{text}");
    }
}
