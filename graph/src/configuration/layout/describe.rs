use super::{LayoutBatch, LayoutEntry};
use crate::configuration::count::{append_nodes, joined};

/// Describes a layout in a few words; `configurable` holds the node of each slot.
pub(super) fn describe(batch: &LayoutBatch, config: usize, configurable: &[u32]) -> String {
    let entries = configurable
        .iter()
        .enumerate()
        .map(|(slot, node)| (node, batch.entry(config, slot)));
    let set: Vec<_> = entries
        .filter(|(_, entry)| *entry != LayoutEntry::DEFAULT)
        .collect();
    let mut text = format!("{} of {} nodes set", set.len(), configurable.len());
    let nodes = set.into_iter();
    let nodes = nodes.map(|(node, entry)| describe_node(*node, entry));
    append_nodes(&mut text, ": ", nodes);
    text
}

/// Writes the node and its minor-to-major lists as HLO does: `17 {1,0}{0,1}`.
fn describe_node(node: u32, entry: LayoutEntry) -> String {
    let tensors = entry
        .tensors()
        .into_iter()
        .map(|tensor| format!("{{{}}}", joined(&tensor)));
    format!("{node} {}", tensors.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayoutBatchBuilder, Limits};

    fn layout(nodes: &[&[[i32; 4]]]) -> String {
        let entry =
            |tensors: &&[[i32; 4]]| LayoutEntry::from_tensors(tensors.iter(), String::new).unwrap();
        let entries: Vec<LayoutEntry> = nodes.iter().map(entry).collect();
        let mut builder = LayoutBatchBuilder::new(nodes.len(), Limits::default());
        builder.push(&entries).unwrap();
        let configurable: Vec<u32> = (10..).take(nodes.len()).collect();
        describe(&builder.build().unwrap(), 0, &configurable)
    }

    #[test]
    fn only_nodes_that_are_set_are_shown() {
        assert_eq!(
            layout(&[&[], &[[1, 0, 2, 3]], &[]]),
            "1 of 3 nodes set: 11 {1,0,2,3}"
        );
        assert_eq!(layout(&[&[]]), "0 of 1 nodes set");
    }

    #[test]
    fn many_nodes_are_cut_short() {
        let entry: &[[i32; 4]] = &[[3, 2, 1, 0], [0, 1, 2, 3]];
        let text = layout(&[entry; 20]);
        assert!(
            text.starts_with("20 of 20 nodes set: 10 {3,2,1,0}{0,1,2,3}, 11 "),
            "{text}"
        );
        assert!(text.ends_with(", …") && text.len() < 100, "{text}");
    }
}
