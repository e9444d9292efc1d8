use std::sync::Arc;

use hlorank_graph::{ConfigurationError, Configurations, Limits, SegmentedGraph, Task};

use crate::{
    call::CallError,
    compute::ComputePool,
    engine::Engine,
    graphs::Graphs,
    store::{Measurement, MeasurementStore, StoreError, Subject, Whose},
};

/// The measurements that clients reported, if the server keeps them, and what their graphs and scores need.
pub(crate) struct StoredMeasurements {
    store: Option<Arc<MeasurementStore>>,
    pub(super) engine: Arc<Engine>,
    pub(super) graphs: Arc<Graphs>,
    pub(super) limits: Limits,
}

/// Bytes of a measurement beside its configuration: key, record and what the file's pages add.
const MEASUREMENT_BYTES: usize = 1 << 10;

/// Maximum number of bytes of an entry of a layout: as it is kept, in a batch and to learn from.
const ENTRY_BYTES: usize = 40;

/// The same for a column of a node: as it is kept, and twice in lists that grow by doubling while a batch is read.
const COLUMN_BYTES: usize = 6 * size_of::<f32>();

impl StoredMeasurements {
    /// Keeps measurements in a store, if there is one.
    pub(crate) fn new(
        store: Option<Arc<MeasurementStore>>,
        engine: Arc<Engine>,
        graphs: Arc<Graphs>,
        limits: Limits,
    ) -> Self {
        Self {
            store,
            engine,
            graphs,
            limits,
        }
    }

    /// The store, if the server has one.
    pub(crate) fn store(&self) -> Result<&Arc<MeasurementStore>, StoreError> {
        self.store.as_ref().ok_or(StoreError::Off)
    }

    /// The threads that compute.
    pub(crate) fn pool(&self) -> &Arc<ComputePool> {
        self.engine.pool()
    }

    /// Draws at most `count` stored measurements of a graph, those of a configuration one after the other. `hold` is called with
    /// the bytes of each page of them.
    pub(crate) async fn draw(
        &self,
        subject: &Subject,
        graph: &SegmentedGraph,
        whose: &Whose,
        count: usize,
        mut hold: impl FnMut(usize) -> Result<(), CallError>,
    ) -> Result<Vec<Measurement>, CallError> {
        let store = self.store()?;
        let mut keys = store.draw(subject, whose, count).await?;
        keys.sort_unstable();
        let mut measurements = Vec::with_capacity(keys.len());
        let mut left = keys.as_slice();
        while !left.is_empty() {
            let (page, read) = store.read(left).await?;
            hold(page_bytes(graph, &page))?;
            measurements.extend(page);
            left = &left[read..];
        }
        Ok(measurements)
    }
}

/// Bytes that measurements of a graph take once they are read.
fn page_bytes(graph: &SegmentedGraph, page: &[Measurement]) -> usize {
    // Canonical configurations of a feature set have 4 bytes for each column of each node.
    let longest = page.iter().map(|each| each.config.len()).max();
    let columns = longest.map(|bytes| bytes / (4 * graph.slots().max(1)));
    let columns = columns.filter(|_| graph.task == Task::FeatureSet);
    measurement_bytes(graph, columns, page.len())
}

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

/// Reads stored configurations of a graph from their canonical bytes, and checks them against the graph.
pub(crate) fn read_canonical(
    graph: &SegmentedGraph,
    configs: &[&[u8]],
) -> Result<Configurations, ConfigurationError> {
    let configs = configs.iter().copied();
    let read = Configurations::from_canonical(graph.task, configs, &Limits::default())?;
    read.check(&graph.whole)?;
    Ok(read)
}
