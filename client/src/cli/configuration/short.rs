use hlorank_graph::{Configurations, LayoutBatch, LayoutEntry, TileConfiguration};

/// Letters that the nodes of a layout may take before the rest is left out.
const LAYOUT_LETTERS: usize = 40;

/// A configuration in a few words; `configurable` gives the node of each slot of a layout.
pub(crate) fn short(configurations: &Configurations, configurable: &[u32], config: usize) -> String {
    match configurations {
        Configurations::Layout(batch) => short_layout(batch, configurable, config),
        Configurations::Tile(batch) => short_tile(batch.get(config)),
    }
}

fn short_tile(tile: TileConfiguration<'_>) -> String {
    let lists =
        [("kernel", tile.kernel_bounds), ("output", tile.output_bounds), ("input", tile.input_bounds)];
    let lists = lists.into_iter().filter(|(_, bounds)| !bounds.is_empty());
    let lists: Vec<String> = lists.map(|(name, bounds)| format!("{name} [{}]", joined(bounds))).collect();
    if lists.is_empty() { "no bounds".to_owned() } else { lists.join(" ") }
}

fn short_layout(batch: &LayoutBatch, configurable: &[u32], config: usize) -> String {
    let entries = configurable.iter().enumerate().map(|(slot, node)| (node, batch.entry(config, slot)));
    let set: Vec<_> = entries.filter(|(_, entry)| *entry != LayoutEntry::DEFAULT).collect();
    let mut text = format!("{} of {} nodes set", set.len(), configurable.len());
    let start = text.len();
    for (position, (node, entry)) in set.into_iter().enumerate() {
        if text.len() - start > LAYOUT_LETTERS {
            text.push_str(", …");
            break;
        }
        text.push_str(if position == 0 { ": " } else { ", " });
        text.push_str(&short_node(*node, entry));
    }
    text
}

/// The node and its minor-to-major lists as HLO writes them: `17 {1,0}{0,1}`.
fn short_node(node: u32, entry: LayoutEntry) -> String {
    let tensors = entry.tensors().into_iter().map(|tensor| format!("{{{}}}", joined(&tensor)));
    format!("{node} {}", tensors.collect::<String>())
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{LayoutBatchBuilder, Limits};

    use super::*;

    fn layout(nodes: &[&[[i32; 4]]]) -> String {
        let entry = |tensors: &&[[i32; 4]]| LayoutEntry::from_tensors(tensors.iter(), String::new).unwrap();
        let entries: Vec<LayoutEntry> = nodes.iter().map(entry).collect();
        let mut builder = LayoutBatchBuilder::new(nodes.len(), Limits::default());
        builder.push(&entries).unwrap();
        let configurable: Vec<u32> = (10..).take(nodes.len()).collect();
        short(&Configurations::Layout(builder.build().unwrap()), &configurable, 0)
    }

    #[test]
    fn only_lists_with_bounds_are_told() {
        let tile = TileConfiguration { kernel_bounds: &[3, 1], output_bounds: &[8, 128], input_bounds: &[] };
        assert_eq!(short_tile(tile), "kernel [3,1] output [8,128]");
        let tile = TileConfiguration { kernel_bounds: &[], output_bounds: &[], input_bounds: &[] };
        assert_eq!(short_tile(tile), "no bounds");
    }

    #[test]
    fn only_nodes_that_are_set_are_told() {
        assert_eq!(layout(&[&[], &[[1, 0, 2, 3]], &[]]), "1 of 3 nodes set: 11 {1,0,2,3}");
        assert_eq!(layout(&[&[]]), "0 of 1 nodes set");
    }

    #[test]
    fn many_nodes_are_cut_short() {
        let entry: &[[i32; 4]] = &[[3, 2, 1, 0], [0, 1, 2, 3]];
        let text = layout(&[entry; 20]);
        assert!(text.starts_with("20 of 20 nodes set: 10 {3,2,1,0}{0,1,2,3}, 11 "), "{text}");
        assert!(text.ends_with(", …") && text.len() < 100, "{text}");
    }
}
