use std::sync::Arc;

use hlorank_graph::ConfigurationError;

use super::{
    StoredMeasurements,
    kept_graph::{keep, kept_bytes},
    measurement_bytes,
};
use crate::{
    call::{Call, CallError, REPORT, SentMeasurements, read_batch},
    compute::Class,
    graphs::FoundGraph,
    store::{KeptGraph, Measurement, Reported, Reporter, Subject},
};

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
            target: sent.target,
            graph: graph.hash,
        };
        let batch = sent.batch.ok_or(CallError::Configuration {
            field: REPORT.batch,
            source: ConfigurationError::Empty,
        })?;
        // What reading and keeping them takes is held before either begins.
        let read_bytes = batch.read_bytes(graph.slots(), &limits);
        let kept_bytes = measurement_bytes(&graph, batch.columns(), batch.count());
        call.place.hold(read_bytes + kept_bytes)?;
        let outcomes = sent.outcomes.into_iter().zip(sent.ids).enumerate();
        let by = reporter.clone();
        let read = move |_| {
            let configurations = read_batch(&batch, &graph, &limits, REPORT.batch)?;
            let measurements = outcomes.map(|(config, (outcome, id))| Measurement {
                task: graph.task,
                config: configurations.canonical(config),
                id,
                outcome,
                reporter: by.clone(),
            });
            Ok::<_, CallError>(measurements.collect::<Vec<_>>())
        };
        let measurements = self.pool().run(Class::Bulk, read).await?.value?;
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
