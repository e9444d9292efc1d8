use std::sync::Arc;

use hlorank_graph::{Limits, SegmentedGraph, Task};

use super::bytes::measurement_bytes;
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
