//! Reads stored measurements of related lists: of kernels that have the structure of the call's kernel, on its target, and of the
//! call's graph on other targets.

use std::sync::Arc;

use hlorank_graph::{Digest, SegmentedGraph, Task};

use super::{
    Learner, Learning, OtherTargets, learn::Source, measured::measurements_of,
    predict::points_of_measured,
};
use crate::{
    adaptation::{Expectation, Measurement, Measurements, RelatedBasis, StudiedTargets},
    call::CallError,
    compute::Class,
    store::{MeasurementStore, Subject},
    stored_measurements::{StoredMeasurements, read_canonical},
};

/// Maximum number of kernels, and of measurements of each.
const MAX_KERNELS: usize = 8;
const MAX_OF_KERNEL: usize = 64;

/// Maximum number of other targets that a call learns from, and of measurements of each.
pub(crate) const MAX_OTHER_TARGETS: usize = 16;
const MAX_OF_TARGET: usize = 300;

/// Maximum number of targets that are looked through for measurements of the graph.
const MAX_LOOKED_THROUGH: usize = 256;

impl Learning {
    /// Learns from the kernels of the structure of the call's kernel that were measured. Returns nothing for other tasks.
    pub(super) async fn kernels(
        &self,
        learner: Learner<'_>,
        source: &Source,
    ) -> Result<Option<(Option<Expectation>, RelatedBasis)>, CallError> {
        if learner.graph.task != Task::Tile {
            return Ok(None);
        }
        let subject = source.subject(learner.graph);
        let structure = learner.graph.whole.structure();
        let manifest = learner.model.manifest();
        let (unit, prior) = (manifest.unit, manifest.prior);
        let alike = self.stored.store()?.alike(subject, structure, MAX_KERNELS);
        let mut measured = Vec::new();
        // Lists are read one by one, so that the memory of one is free again before the next.
        for kernel in alike.await? {
            let list = self
                .stored
                .measured_list(&kernel, &source.whose, MAX_OF_KERNEL);
            let Some(list) = list.await? else { continue };
            let scores = self.stored.replay(learner.model, &list).await?;
            let points = points_of_measured(&list.configurations, &scores, unit).into_iter();
            let finite = points
                .zip(&list.seconds)
                .filter(|(point, _)| point.score.is_finite());
            let list = finite.map(|(point, &seconds)| Measurement {
                point,
                seconds: Some(seconds),
                repeats: 1,
            });
            measured.push(Measurements::new(list.collect()));
        }
        let learn = move |_| Expectation::of_kernels(prior, &measured);
        Ok(Some(self.pool().run(Class::Bulk, learn).await?.value))
    }

    /// Reads and compares what was measured of the call's graph on other targets than that of the source, by its reporter. Returns
    /// nothing if the call wants none, or if there are none.
    pub(super) async fn other_targets(
        &self,
        learner: Learner<'_>,
        source: &Source,
        wanted: OtherTargets,
    ) -> Result<Option<(Vec<String>, Arc<StudiedTargets>)>, CallError> {
        let targets = other_targets(&self.stored, learner.graph, &source.target, wanted).await?;
        if targets.is_empty() {
            return Ok(None);
        }
        let mut measured = Vec::new();
        for target in &targets {
            let other = Source {
                target: target.clone(),
                whose: source.whose.clone(),
            };
            measured.push(self.measured_on(learner, &other).await?);
        }
        let prior = learner.model.manifest().prior;
        let cache = Arc::clone(&self.cache);
        let study = move |_| cache.study(prior, &measured);
        let studied = self.pool().run(Class::Bulk, study).await?.value;
        Ok(Some((targets, studied)))
    }

    /// What was measured of the call's graph on another target.
    async fn measured_on(
        &self,
        learner: Learner<'_>,
        source: &Source,
    ) -> Result<Measurements, CallError> {
        let stored = self.stored(learner, source, MAX_OF_TARGET).await?;
        if stored.is_empty() {
            return Ok(Measurements::default());
        }
        let stored = Arc::new(stored);
        let graph = Arc::clone(learner.graph);
        let configs = Arc::clone(&stored);
        let read = move |_| {
            let configs: Vec<&[u8]> = configs.iter().map(|each| &each.config[..]).collect();
            read_canonical(&graph, &configs)
        };
        let read = self.pool().run(Class::Bulk, read).await?.value;
        let configurations = Arc::new(read.map_err(|source| CallError::Configuration {
            field: "adapt.other_targets",
            source,
        })?);
        let scores = self.scores(learner, &configurations).await?;
        let unit = learner.model.manifest().unit;
        let client = learner.call.client.reporter.clone();
        let measurements = move |_| {
            let points = points_of_measured(&configurations, &scores, unit).into_iter();
            let measured = points.zip(&*stored);
            measurements_of(
                measured.map(|(point, each)| (point, each.outcome, each.reporter == client)),
            )
        };
        Ok(self.pool().run(Class::Bulk, measurements).await?.value)
    }
}

/// The other targets that a call wants, by name.
pub(super) async fn other_targets(
    stored: &StoredMeasurements,
    graph: &SegmentedGraph,
    own: &str,
    wanted: OtherTargets,
) -> Result<Vec<String>, CallError> {
    let mut targets = match wanted {
        OtherTargets::Named(names) => names,
        OtherTargets::All => known_targets(stored.store()?, graph, own).await?,
    };
    // Calls that name the same targets in another order find each other's work in the cache.
    targets.retain(|other| other != own);
    targets.sort_unstable();
    targets.dedup();
    targets.truncate(MAX_OTHER_TARGETS);
    Ok(targets)
}

/// The first other targets that have measurements of a graph or of other instances of its set, by name.
async fn known_targets(
    store: &MeasurementStore,
    graph: &SegmentedGraph,
    own: &str,
) -> Result<Vec<String>, CallError> {
    let mut targets = Vec::new();
    let mut after = None;
    for _ in 0..MAX_LOOKED_THROUGH {
        let next = store.subjects(after, 1).await?.into_iter().next();
        // The subjects come by target, so that the first after a target's last one is that of the next target.
        let Some((Subject { target, .. }, _)) = next else {
            break;
        };
        let subject = Subject {
            target: target.clone(),
            graph: graph.hash,
        };
        if target != own && is_known(store, graph, subject).await? {
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

/// Whether a graph or another instance of its set has measurements on a target.
async fn is_known(
    store: &MeasurementStore,
    graph: &SegmentedGraph,
    subject: Subject,
) -> Result<bool, CallError> {
    if store.has_graph(subject.clone()).await? {
        return Ok(true);
    }
    let set = graph.whole.feature_graph();
    let has_features = set.is_some_and(|set| !set.instance_features().is_empty());
    Ok(has_features
        && !store
            .alike(subject, graph.whole.structure(), 1)
            .await?
            .is_empty())
}
