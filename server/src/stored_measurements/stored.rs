use std::sync::Arc;

use hlorank_graph::{Limits, SegmentedGraph};

use super::bytes::measurement_bytes;
use crate::{
    call::{Call, CallError},
    compute::ComputePool,
    engine::Engine,
    graphs::Graphs,
    store::{Chosen, Measurement, MeasurementStore, StoreError},
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

    /// Reads the first of the chosen measurements, at most `count`, which are of one graph, and which the call holds. `columns` is
    /// the number of configuration columns that the model takes, if it names them.
    pub(crate) async fn read(
        &self,
        call: &Call,
        graph: &SegmentedGraph,
        columns: Option<usize>,
        chosen: &Chosen,
        count: usize,
    ) -> Result<Vec<Measurement>, CallError> {
        let hold = |page| Ok(call.place.hold(measurement_bytes(graph, columns, page))?);
        self.read_pages(chosen, count, hold).await
    }

    /// Reads the first of the chosen measurements, at most `count`. `hold` is called with the length of each page.
    pub(super) async fn read_pages(
        &self,
        chosen: &Chosen,
        count: usize,
        hold: impl Fn(usize) -> Result<(), CallError>,
    ) -> Result<Vec<Measurement>, CallError> {
        let store = self.store()?;
        let mut stored = Vec::new();
        let mut after = None;
        loop {
            let left = count - stored.len();
            let page = store.list(chosen, after, left).await?;
            hold(page.measurements.len())?;
            stored.extend(page.measurements.into_iter().map(|(_, each)| each));
            after = page.next;
            if after.is_none() || stored.len() >= count {
                return Ok(stored);
            }
        }
    }
}
