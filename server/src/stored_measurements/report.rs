use std::sync::Arc;

use hlorank_graph::{ConfigurationError, EncodedBatch, Limits, SegmentedGraph};

use super::{
    StoredMeasurements,
    bytes::measurement_bytes,
    kept_graph::{keep, kept_bytes},
};
use crate::{
    call::{Call, CallError, REPORT, SentMeasurements, read_batch},
    compute::Class,
    graphs::FoundGraph,
    store::{KeptGraph, Measurement, Outcome, Reported, Reporter, Subject},
};

/// Measurements of a report, whose configurations are still encoded.
struct ReportedBatch {
    batch: EncodedBatch,
    outcomes: Vec<Outcome>,
    ids: Vec<Vec<u8>>,
    reporter: Reporter,
}

impl StoredMeasurements {
    /// Keeps measurements, and their graph with the first of them. Returns once they are on disk.
    pub(crate) async fn report(
        &self,
        call: &Call,
        found: &FoundGraph,
        sent: SentMeasurements,
        reporter: Reporter,
    ) -> Result<Reported, CallError> {
        let store = self.store()?;
        let graph = Arc::clone(&found.graph);
        let limits = self.limits;
        let subject = Subject {
            target: sent.target.clone(),
            graph: graph.hash,
        };
        let report = ReportedBatch::of(sent, reporter.clone())?;
        // What reading and keeping them takes is held before either begins.
        call.place.hold(report.bytes(&graph, &limits))?;
        let measurements = move |_| report.read(&graph, &limits);
        let measurements = self.pool().run(Class::Bulk, measurements).await?.value?;
        // The graph is compressed with the first report alone. Two first ones at once keep equal
        // graphs.
        let kept = if store.has_graph(subject.clone()).await? {
            None
        } else {
            self.graph_to_keep(call, found, reporter).await?
        };
        Ok(store.report(subject, measurements, kept).await?)
    }

    /// Returns a graph for the store; nothing if its message is too large.
    async fn graph_to_keep(
        &self,
        call: &Call,
        found: &FoundGraph,
        reporter: Reporter,
    ) -> Result<Option<KeptGraph>, CallError> {
        let graph = Arc::clone(&found.graph);
        let program = found.program.clone();
        call.place.hold(kept_bytes(&graph.whole))?;
        let keep = move |_| keep(&graph.whole, program.as_deref(), reporter);
        self.pool().run(Class::Bulk, keep).await?.value
    }
}

impl ReportedBatch {
    fn of(sent: SentMeasurements, reporter: Reporter) -> Result<Self, CallError> {
        let batch = sent.batch.ok_or(CallError::Configuration {
            field: REPORT.batch,
            source: ConfigurationError::Empty,
        })?;
        Ok(Self {
            batch,
            outcomes: sent.outcomes,
            ids: sent.ids,
            reporter,
        })
    }

    /// Bytes that reading and keeping it takes.
    fn bytes(&self, graph: &SegmentedGraph, limits: &Limits) -> usize {
        let Self { batch, .. } = self;
        let read_bytes = batch.read_bytes(graph.slots(), limits);
        read_bytes + measurement_bytes(graph, batch.columns(), batch.count())
    }

    fn read(self, graph: &SegmentedGraph, limits: &Limits) -> Result<Vec<Measurement>, CallError> {
        let configurations = read_batch(&self.batch, graph, limits, REPORT.batch)?;
        let outcomes = self.outcomes.into_iter().zip(self.ids).enumerate();
        let measurements = outcomes.map(|(config, (outcome, id))| Measurement {
            task: graph.task,
            config: configurations.canonical(config),
            id,
            outcome,
            reporter: self.reporter.clone(),
        });
        Ok(measurements.collect())
    }
}
