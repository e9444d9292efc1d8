//! Measured graphs, and random configurations of them.

use std::iter;

use hlorank_tests::prelude::*;

/// Flag of a server that evaluates every row of every call.
pub(crate) const WITHOUT_CACHE: &str = "--embedding-cache-bytes=0";

/// Returns `TpuGraphs`' AlexNet, for which the targets were set, if it is available.
pub(crate) fn alexnet() -> Option<MeasuredGraph> {
    shared("data/tpu/alexnet_layout.npz").map(|path| read(&path))
}

/// Returns a training step of our own, with large segments.
pub(crate) fn window_training() -> MeasuredGraph {
    read(&fixture("measured/layout_random_window_nchw_train.pb"))
}

/// Returns AlexNet, else a training step of our own.
pub(crate) fn layout_graph() -> MeasuredGraph {
    alexnet().unwrap_or_else(window_training)
}

/// Reads the first graph of a file.
pub(crate) fn read(path: &Path) -> MeasuredGraph {
    read_graphs(path).remove(0)
}

pub(crate) fn measured_layouts(graph: &MeasuredGraph) -> &LayoutBatch {
    let Configurations::Layout(batch) = configurations(graph) else {
        panic!("{} has no layouts", graph.name)
    };
    batch
}

/// Returns the entries of a layout.
pub(crate) fn entries(layouts: &LayoutBatch, config: usize) -> Vec<LayoutEntry> {
    let slots = 0..layouts.slots();
    slots.map(|slot| layouts.entry(config, slot)).collect()
}

/// Draws an entry of a slot from those that were measured.
pub(crate) fn random_entry(measured: &LayoutBatch, slot: usize, random: &mut Rng) -> LayoutEntry {
    let table = measured.table(slot);
    table[random.usize(..table.len())]
}

/// Returns configurations whose entries are drawn.
pub(crate) fn drawn_layouts(
    slots: usize,
    count: usize,
    draw: impl FnMut() -> Vec<LayoutEntry>,
) -> LayoutBatch {
    let unlimited = Limits {
        configs: usize::MAX,
        config_entries: usize::MAX,
        ..Limits::default()
    };
    let mut builder = LayoutBatchBuilder::new(slots, unlimited);
    for layout in iter::repeat_with(draw).take(count) {
        builder.push(&layout).expect("a batch within the limits");
    }
    builder.build().expect("a batch")
}

/// Returns configurations whose entries are drawn node by node from those in `measured`.
pub(crate) fn random_layouts(
    measured: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> LayoutBatch {
    drawn_layouts(measured.slots(), count, || {
        let slots = 0..measured.slots();
        slots
            .map(|slot| random_entry(measured, slot, random))
            .collect()
    })
}

/// Returns recombined configurations, in which each segment is as in one of the measured configurations.
pub(crate) fn recombined_layouts(
    graph: &SegmentedGraph,
    measured: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> LayoutBatch {
    drawn_layouts(measured.slots(), count, || {
        let mut layout = vec![LayoutEntry::DEFAULT; measured.slots()];
        for occurrence in &graph.occurrences {
            let config = random.usize(..measured.len());
            for &slot in &occurrence.slots {
                layout[slot] = measured.entry(config, slot);
            }
        }
        layout
    })
}
