//! Stored measurements as lists that any model of their task can score.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Configurations, Digest, SegmentedGraph, pace};
use hlorank_proto::v1;

use super::{
    StoredMeasurements, read_canonical,
    stored::{graph_of, message_bytes, message_of},
};
use crate::{
    admission::Place,
    call::CallError,
    compute::Class,
    engine::Terms,
    memory::HeldBytes,
    model::Model,
    store::{KeptGraph, Measurement, Reporter, ReporterFilter, Subject},
};

/// The measured configurations of a graph on a target, each once.
pub(crate) struct MeasuredList {
    pub(crate) graph: Arc<SegmentedGraph>,
    pub(crate) configurations: Arc<Configurations>,
    /// `[configurations]` the geometric mean of the run times of each.
    pub(crate) seconds: Vec<f64>,
    _held: Vec<HeldBytes>,
}

/// A list that would take longer is not scored.
const MAX_TIME: Duration = Duration::from_mins(1);

impl StoredMeasurements {
    /// Returns the measured configurations of a graph on a target; nothing if the graph is not kept, or if nothing succeeded. At
    /// most `count` measurements are drawn.
    pub(crate) async fn measured_list(
        &self,
        subject: &Subject,
        whose: &ReporterFilter,
        count: usize,
    ) -> Result<Option<MeasuredList>, CallError> {
        let Some((graph, of_graph)) = self.read_graph(subject).await? else {
            return Ok(None);
        };
        let memory = self.engine.memory();
        let mut held = vec![of_graph];
        let take = |bytes| {
            held.push(memory.hold(bytes)?);
            Ok(())
        };
        let measurements = self.draw(subject, &graph, whose, count, take).await?;
        let first = whose.first().cloned();
        let list = move |_| MeasuredList::new(graph, measurements, first.as_ref(), held);
        self.pool().run(Class::Bulk, list).await?.value
    }

    /// Returns the graph of a subject, from the cache or as it is kept; nothing if it is not kept.
    pub(crate) async fn read_graph(
        &self,
        subject: &Subject,
    ) -> Result<Option<(Arc<SegmentedGraph>, HeldBytes)>, CallError> {
        let Some(kept) = self.store()?.graph(subject.clone()).await? else {
            return Ok(None);
        };
        self.kept_or_cached(kept, subject.graph).await.map(Some)
    }

    /// Returns the graph with this hash from the cache, or reads the one that is kept.
    async fn kept_or_cached(
        &self,
        kept: KeptGraph,
        hash: Digest,
    ) -> Result<(Arc<SegmentedGraph>, HeldBytes), CallError> {
        let memory = Arc::clone(self.engine.memory());
        if let Some(graph) = self.graphs.cached(hash).await {
            let held = memory.hold(graph.bytes())?;
            return Ok((graph, held));
        }
        let limits = self.limits;
        let kernels = Arc::clone(self.graphs.kernels());
        let read = move |_| graph_of(&kept, hash, &limits, &kernels, &memory);
        self.pool().run(Class::Bulk, read).await?.value
    }

    /// Returns the message of the graph of a subject; nothing if it is not kept. `place` holds it and the answer with it.
    pub(crate) async fn kept_graph(
        &self,
        subject: Subject,
        place: &Place,
    ) -> Result<Option<v1::Graph>, CallError> {
        let Some(kept) = self.store()?.graph(subject).await? else {
            return Ok(None);
        };
        place.hold(2 * message_bytes(&kept))?;
        let limits = self.limits;
        let read = move |_| message_of(&kept, &limits);
        self.pool().run(Class::Bulk, read).await?.value.map(Some)
    }

    /// Scores a list, behind all other work.
    pub(crate) async fn replay(
        &self,
        model: &Model,
        list: &MeasuredList,
    ) -> Result<Vec<f32>, CallError> {
        let terms = Terms {
            deadline: Some(Instant::now() + MAX_TIME),
            class: Class::Bulk,
            continues_request: false,
        };
        let configurations = Arc::clone(&list.configurations);
        let scored = self.engine.score(model, &list.graph, configurations, terms);
        Ok(scored.await?.scores)
    }
}

impl MeasuredList {
    /// Measurements of one configuration follow each other. Those of the reporter `first` take the place of others of the same
    /// configuration.
    fn new(
        graph: Arc<SegmentedGraph>,
        measurements: Vec<Measurement>,
        first: Option<&Reporter>,
        held: Vec<HeldBytes>,
    ) -> Result<Option<Self>, CallError> {
        let measurements = measurements.into_iter();
        let succeeded = measurements.filter(|each| each.outcome.failure == 0);
        let succeeded: Vec<Measurement> = succeeded.collect();
        let same = |one: &Measurement, other: &Measurement| one.config == other.config;
        let is_first = |each: &&Measurement| Some(&each.reporter) == first;
        let mut configs = Vec::new();
        let mut seconds = Vec::new();
        for repeated in pace::in_steps(64, succeeded.chunk_by(same)) {
            configs.push(repeated[0].config.as_slice());
            let own: Vec<&Measurement> = repeated.iter().filter(is_first).collect();
            seconds.push(if own.is_empty() {
                geometric_mean(repeated)
            } else {
                geometric_mean(own)
            });
        }
        if configs.is_empty() {
            return Ok(None);
        }
        let read = read_canonical(&graph, &configs);
        let configurations = read.map_err(|source| CallError::Configuration {
            field: "measurements",
            source,
        })?;
        Ok(Some(Self {
            graph,
            configurations: Arc::new(configurations),
            seconds,
            _held: held,
        }))
    }
}

/// The mean of logarithms counts every run once, as adaptation does.
fn geometric_mean<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> f64 {
    let mut sum = 0.0;
    let mut runs = 0.0;
    for Measurement { outcome, .. } in measurements {
        let repeats = f64::from(outcome.repeats);
        sum += repeats * libm::log(outcome.seconds);
        runs += repeats;
    }
    libm::exp(sum / runs)
}
