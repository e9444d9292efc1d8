//! Learns from stored measurements of the call's graph on other targets.

use std::sync::Arc;

use hlorank_graph::{Configurations, Digest};

use super::{
    Learner, Learning, OtherTargets,
    learn::Source,
    measured::{MeasuredPoint, measurements_of},
    other_targets::{MAX_OTHER_TARGETS, OtherMeasurements},
    predict::points_of_measured,
};
use crate::{
    adaptation::Measurements,
    call::CallError,
    compute::Class,
    store::{Measurement, Subject},
    stored_measurements::read_canonical,
};

/// Maximum number of targets that are looked through for measurements of the graph.
const MAX_LOOKED_THROUGH: usize = 256;

/// Maximum number of measurements of each target.
const MAX_MEASURED: usize = 300;

impl Learning {
    /// Reads and compares what was measured of the call's graph on other targets than that of the source, by its reporter. Returns
    /// nothing if the call wants none, or if there are none.
    pub(super) async fn other_measurements(
        &self,
        learner: Learner<'_>,
        source: &Source,
        wanted: OtherTargets,
    ) -> Result<Option<OtherMeasurements>, CallError> {
        let mut targets = match wanted {
            OtherTargets::Named(names) => names,
            OtherTargets::All => self.targets_of(learner.graph.hash, &source.target).await?,
        };
        // Calls that name the same targets in another order find each other's work in the cache.
        targets.retain(|other| *other != source.target);
        targets.sort_unstable();
        targets.dedup();
        targets.truncate(MAX_OTHER_TARGETS);
        if targets.is_empty() {
            return Ok(None);
        }
        let mut sources = Vec::new();
        for target in &targets {
            let other = Source {
                target: target.clone(),
                whose: source.whose.clone(),
            };
            sources.push(self.measured_on(learner, &other).await?);
        }
        let prior = learner.model.manifest().prior();
        let cache = Arc::clone(&self.sources);
        let study = move |_| cache.study(prior, &sources);
        let studied = self.pool().run(Class::Bulk, study).await?.value;
        Ok(Some(OtherMeasurements { targets, studied }))
    }

    /// The first other targets that have measurements of a graph, by name.
    async fn targets_of(&self, graph: Digest, own: &str) -> Result<Vec<String>, CallError> {
        let store = self.stored.store()?;
        let mut targets = Vec::new();
        let mut after = None;
        for _ in 0..MAX_LOOKED_THROUGH {
            let next = store.subjects(after, 1).await?.into_iter().next();
            // The subjects come by target, so that the first after a target's last one is that of
            // the next target.
            let Some((Subject { target, .. }, _)) = next else {
                break;
            };
            let subject = Subject {
                target: target.clone(),
                graph,
            };
            if target != own && store.has_graph(subject).await? {
                targets.push(target.clone());
            }
            if targets.len() == MAX_OTHER_TARGETS {
                break;
            }
            // No graph has this hash, so the next subject is the first of the next target.
            let graph = Digest([u8::MAX; 32]);
            after = Some(Subject { target, graph });
        }
        Ok(targets)
    }

    /// What was measured of the call's graph on another target.
    async fn measured_on(
        &self,
        learner: Learner<'_>,
        source: &Source,
    ) -> Result<Measurements, CallError> {
        let stored = self.stored(learner, source, MAX_MEASURED).await?;
        if stored.is_empty() {
            return Ok(Measurements::default());
        }
        let stored = Arc::new(stored);
        let reading = self.stored_configs(learner, Arc::clone(&stored));
        let configurations = reading.await?;
        let scores = self.scores(learner, &configurations).await?;
        let unit = learner.model.manifest().unit();
        let client = learner.call.client.reporter.clone();
        let measurements = move |_| {
            let points = points_of_measured(&configurations, &scores, unit).into_iter();
            measurements_of(points.zip(&*stored).map(|(point, each)| MeasuredPoint {
                point,
                outcome: each.outcome,
                is_own: each.reporter == client,
            }))
        };
        Ok(self.pool().run(Class::Bulk, measurements).await?.value)
    }

    /// Reads the configurations of stored measurements on a worker.
    async fn stored_configs(
        &self,
        learner: Learner<'_>,
        stored: Arc<Vec<Measurement>>,
    ) -> Result<Arc<Configurations>, CallError> {
        let graph = Arc::clone(learner.graph);
        let read = move |_| {
            let configs: Vec<&[u8]> = stored.iter().map(|each| &each.config[..]).collect();
            read_canonical(&graph, &configs)
        };
        let read = self.pool().run(Class::Bulk, read).await?.value;
        read.map(Arc::new)
            .map_err(|source| CallError::Configuration {
                field: "adapt.other_targets",
                source,
            })
    }
}
