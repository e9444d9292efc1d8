//! Measured graphs, and random configurations of them.

use hlorank_tests::prelude::*;

/// Returns `TpuGraphs`' AlexNet, for which the targets were set, if it is available.
pub(crate) fn alexnet() -> Option<MeasuredGraph> {
    shared("data/tpu/alexnet_layout.npz").map(|path| read(&path))
}

/// Returns AlexNet, else a training step of our own.
pub(crate) fn layout_graph() -> MeasuredGraph {
    alexnet().unwrap_or_else(|| read(&fixture("measured/layout_random_window_nchw_train.pb")))
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

/// Returns configurations whose entries are drawn node by node from those in `measured`.
pub(crate) fn random_layouts(
    measured: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(measured.slots(), unlimited());
    for _ in 0..count {
        let draw = |slot| measured.table(slot)[random.usize(..measured.table(slot).len())];
        let entries: Vec<LayoutEntry> = (0..measured.slots()).map(draw).collect();
        builder.push(&entries).expect("a batch within the limits");
    }
    builder.build().expect("a batch")
}

/// Returns recombined configurations, in which each segment is as in one of the measured configurations.
pub(crate) fn recombined_layouts(
    graph: &SegmentedGraph,
    measured: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(measured.slots(), unlimited());
    for _ in 0..count {
        let mut entries = vec![LayoutEntry::DEFAULT; measured.slots()];
        for occurrence in &graph.occurrences {
            let config = random.usize(..measured.len());
            for &slot in &occurrence.slots {
                entries[slot] = measured.entry(config, slot);
            }
        }
        builder.push(&entries).expect("a batch within the limits");
    }
    builder.build().expect("a batch")
}

pub(crate) fn unlimited() -> Limits {
    Limits {
        configs: usize::MAX,
        config_entries: usize::MAX,
        ..Limits::default()
    }
}
