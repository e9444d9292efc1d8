//! Reads stored measurements of related lists: of other instances of a set, of kernels that have the structure of the call's kernel, and
//! of the call's graph on other targets. Instances are many, so that they are learned in the background.

use std::{iter::once, sync::Arc, time::Instant};

use hlorank_adaptation::{MAX_PARAMETERS, RelatedList, RelatedModel, SourceKind, TaughtByLists};
use hlorank_graph::{Digest, SegmentedGraph};

use super::{
    Learner, Learning, OtherTargets, instance_models::LearnedSet, learn::Source, lesson::ReadLists,
    measured::measurements_of, predict::points_of_measured,
};
use crate::{
    call::{CallError, Deadline},
    compute::Class,
    engine::{Engine, Terms},
    memory::HeldBytes,
    model::Model,
    store::{ReporterFilter, Subject},
    stored_measurements::{StoredMeasurements, read_canonical},
};

/// Related lists of a graph, and what reads them.
pub(super) struct RelatedLists {
    kind: SourceKind,
    stored: Arc<StoredMeasurements>,
    engine: Arc<Engine>,
    model: Arc<Model>,
    graph: Arc<SegmentedGraph>,
    source: Source,
    others: OtherTargets,
    /// `None` if they are read in the background.
    deadline: Option<Instant>,
}

/// Maximum number of other targets that a call learns from.
pub(crate) const MAX_OTHER_TARGETS: usize = 16;

/// Maximum number of measurements of all lists.
const MAX_MEASURED: usize = 131_072;

/// Maximum number of targets that are looked through for measurements of the graph.
const MAX_LOOKED_THROUGH: usize = 256;

/// Bytes that learning takes for each measurement beside its parameters: its row of columns, and its parts in other tables.
const ROW_BYTES: usize = 512;

/// Maximum number of lists of other graphs, and of measurements of each list.
const fn limits(kind: SourceKind) -> [usize; 2] {
    match kind {
        SourceKind::Instances => [4_096, 1_024],
        SourceKind::Kernels => [8, 64],
        SourceKind::Targets => [0, 300],
    }
}

impl Learning {
    /// Returns what other instances of the set of the call's graph taught; nothing while they are being learned for the first time.
    pub(super) async fn instances(
        &self,
        learner: Learner<'_>,
        source: &Source,
        others: OtherTargets,
    ) -> Result<Option<TaughtByLists>, CallError> {
        let mut lists = self.related(SourceKind::Instances, learner, source, others);
        lists.deadline = None;
        // The order of names does not matter.
        if let OtherTargets::Named(names) = &mut lists.others {
            names.sort_unstable();
        }
        // What others measured of further instances counts as much as the client's own, so that all clients share a model.
        if let ReporterFilter::First(_) = lists.source.whose {
            lists.source.whose = ReporterFilter::Everyone;
        }
        let known = self.instance_models.known(&lists.key());
        let store = Arc::clone(self.stored.store()?);
        let left = learner.call.deadline.map(Deadline::left);
        let given = known.given(store, lists.learn(), left).await?;
        Ok(given.map(|set| set.taught.clone()))
    }

    /// What is related to the call's graph.
    pub(super) fn related(
        &self,
        kind: SourceKind,
        learner: Learner<'_>,
        source: &Source,
        others: OtherTargets,
    ) -> RelatedLists {
        RelatedLists {
            kind,
            stored: Arc::clone(&self.stored),
            engine: Arc::clone(self.engine()),
            model: Arc::clone(learner.model),
            graph: Arc::clone(learner.graph),
            source: source.clone(),
            others,
            deadline: learner.call.deadline.map(Deadline::instant),
        }
    }
}

impl RelatedLists {
    /// Identifies a set of instances, and what else its model depends on but measurements.
    fn key(&self) -> Digest {
        let manifest = self.model.manifest();
        let key = format!(
            "{:?} {:?} {} {:?} {:?} {:?}",
            self.graph.whole.structure(),
            manifest.name,
            manifest.version,
            self.source.target,
            self.source.whose,
            self.others
        );
        Digest::of_parts("hlorank 2026 a set of instances", [key.as_bytes()])
    }

    /// Reads and learns a set of instances.
    async fn learn(self) -> Result<LearnedSet, CallError> {
        let began = Instant::now();
        let changes = self.stored.store()?.changes();
        let read = self.read().await?;
        let learn = move |_| RelatedModel::learn(read.kind, read.prior, read.lists);
        let taught = self.engine.pool().run(Class::Bulk, learn).await?.value;
        Ok(LearnedSet {
            taught,
            changes,
            finished: Instant::now(),
            took: began.elapsed(),
        })
    }

    pub(super) async fn read(&self) -> Result<ReadLists, CallError> {
        let mut held = self.engine.memory().hold(0)?;
        let mut lists = Vec::new();
        let mut measured = 0;
        let targets = match self.kind {
            SourceKind::Kernels => Vec::new(),
            SourceKind::Instances | SourceKind::Targets => self.other_targets().await?,
        };
        for (subject, other_target) in self.subjects(&targets).await? {
            let list = self.list(&subject, other_target, &mut held).await?;
            measured += list.measurements.distinct();
            lists.push(list);
            if measured >= MAX_MEASURED {
                break;
            }
        }
        Ok(ReadLists {
            kind: self.kind,
            prior: self.model.manifest().prior,
            lists,
            targets,
            _held: held,
        })
    }

    /// The lists on the call's target, then those on other targets, each with the number of its target.
    async fn subjects(
        &self,
        targets: &[String],
    ) -> Result<Vec<(Subject, Option<usize>)>, CallError> {
        let [most, _] = limits(self.kind);
        let others = targets.iter().enumerate();
        let others = others.map(|(number, name)| (name, Some(number)));
        let mut subjects = Vec::new();
        for (target, number) in once((&self.source.target, None)).chain(others) {
            let own = Subject {
                target: target.clone(),
                graph: self.graph.hash,
            };
            let mut of_target = Vec::new();
            let left = most.saturating_sub(subjects.len());
            if left > 0 {
                let structure = self.graph.whole.structure();
                let store = self.stored.store()?;
                of_target = store.alike(own.clone(), structure, left).await?;
            }
            // The instance of the call that learns is one of the set, so that all calls learn the same.
            if self.kind == SourceKind::Instances || number.is_some() {
                of_target.push(own);
            }
            of_target.sort_by_key(|subject| subject.graph.0);
            subjects.extend(of_target.into_iter().map(|subject| (subject, number)));
        }
        Ok(subjects)
    }

    /// Reads what was measured of a list. It is empty if its graph is not kept, or if its configurations cannot be read any more.
    async fn list(
        &self,
        subject: &Subject,
        other_target: Option<usize>,
        held: &mut HeldBytes,
    ) -> Result<RelatedList, CallError> {
        let (stored, pool) = (&self.stored, self.engine.pool());
        let nothing = RelatedList {
            other_target,
            ..RelatedList::default()
        };
        let Some((graph, _of_graph)) = stored.read_graph(subject).await? else {
            return Ok(nothing);
        };
        let [_, most] = limits(self.kind);
        let take = |bytes| Ok(held.add(bytes)?);
        let whose = &self.source.whose;
        let drawn = stored.draw(subject, &graph, whose, most, take).await?;
        if drawn.is_empty() {
            return Ok(nothing);
        }
        let drawn = Arc::new(drawn);
        let (read_from, read_of) = (Arc::clone(&graph), Arc::clone(&drawn));
        let read = move |_| {
            let configs: Vec<&[u8]> = read_of.iter().map(|each| &each.config[..]).collect();
            read_canonical(&read_from, &configs).map(Arc::new)
        };
        let Ok(configurations) = pool.run(Class::Bulk, read).await?.value else {
            return Ok(nothing);
        };
        let terms = Terms {
            deadline: self.deadline,
            class: Class::Bulk,
            continues_request: false,
        };
        let batch = Arc::clone(&configurations);
        let scoring = self.engine.score(&self.model, &graph, batch, terms);
        let scores = scoring.await?.scores;
        let unit = self.model.manifest().unit;
        let first = whose.first().cloned();
        let measurements = move |_| {
            let points = points_of_measured(&configurations, &scores, unit);
            let is_own = |reporter| first.as_ref().is_none_or(|first| first == reporter);
            let measured = points.into_iter().zip(&*drawn);
            measurements_of(
                measured.map(|(point, each)| (point, each.outcome, is_own(&each.reporter))),
            )
        };
        let measurements = pool.run(Class::Bulk, measurements).await?.value;
        let parameters = graph.slots().max(1).saturating_mul(3).min(MAX_PARAMETERS);
        held.add(measurements.distinct() * (ROW_BYTES + parameters * size_of::<f64>()))?;
        let features = graph.whole.feature_graph();
        let features = features.map(|graph| graph.instance_features().clone());
        Ok(RelatedList {
            features: Arc::new(features.unwrap_or_default()),
            measurements,
            ..nothing
        })
    }

    /// The other targets that the call wants, by name.
    async fn other_targets(&self) -> Result<Vec<String>, CallError> {
        let mut targets = match &self.others {
            OtherTargets::Named(names) => names.clone(),
            OtherTargets::All => self.known_targets().await?,
        };
        // Calls that name the same targets in another order find each other's work in the cache.
        targets.retain(|other| *other != self.source.target);
        targets.sort_unstable();
        targets.dedup();
        targets.truncate(MAX_OTHER_TARGETS);
        Ok(targets)
    }

    /// The first other targets that have measurements of the graph or of other instances of its set, by name.
    async fn known_targets(&self) -> Result<Vec<String>, CallError> {
        let store = self.stored.store()?;
        let mut targets = Vec::new();
        let mut after = None;
        for _ in 0..MAX_LOOKED_THROUGH {
            let next = store.subjects(after, 1).await?.into_iter().next();
            // The subjects come by target, so that the first after a target's last one is that of the next target.
            let Some((Subject { target, .. }, _)) = next else {
                break;
            };
            if target != self.source.target && self.is_known(&target).await? {
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

    /// Whether the graph or another instance of its set has measurements on a target.
    async fn is_known(&self, target: &str) -> Result<bool, CallError> {
        let store = self.stored.store()?;
        let subject = Subject {
            target: target.to_owned(),
            graph: self.graph.hash,
        };
        if store.has_graph(subject.clone()).await? {
            return Ok(true);
        }
        let structure = self.graph.whole.structure();
        Ok(self.kind == SourceKind::Instances
            && !store.alike(subject, structure, 1).await?.is_empty())
    }
}
