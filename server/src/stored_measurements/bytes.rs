use hlorank_graph::SegmentedGraph;

/// Bytes of a measurement beside its configuration: key, record and what the file's pages add.
const MEASUREMENT_BYTES: usize = 1 << 10;

/// Maximum number of bytes of an entry of a layout: as it is kept, in a batch and to learn from.
const ENTRY_BYTES: usize = 40;

/// The same for a column of a node: as it is kept, and twice in lists that grow by doubling while a batch is read.
const COLUMN_BYTES: usize = 6 * size_of::<f32>();

/// Bytes of measurements of a graph whose configurations have this many columns of a feature set.
pub(crate) fn measurement_bytes(
    graph: &SegmentedGraph,
    columns: Option<usize>,
    measurements: usize,
) -> usize {
    let slot_bytes = columns.map_or(ENTRY_BYTES, |columns| columns.saturating_mul(COLUMN_BYTES));
    // A hostile number of columns gives the largest number of bytes, which is refused, and no
    // overflow.
    measurements.saturating_mul(
        graph
            .slots()
            .saturating_mul(slot_bytes)
            .saturating_add(MEASUREMENT_BYTES),
    )
}
