//! Learns from stored measurements of other instances of a set.

use std::{collections::BTreeSet, iter::once, mem::take, sync::Arc, time::Instant};

use hlorank_graph::{Digest, InstanceFeatures, SegmentedGraph};

use super::{
    Learner, Learning, OtherTargets, instance_models::LearnedSet, learn::Source,
    measured::measurements_of, predict::points_of_measured, related::other_targets,
};
use crate::{
    adaptation::{Expectation, InstanceModel, MeasuredInstance, RelatedBasis},
    call::CallError,
    compute::Class,
    engine::{Engine, Terms},
    memory::HeldBytes,
    model::Model,
    store::{ReporterFilter, Subject},
    stored_measurements::{StoredMeasurements, read_canonical},
};

/// A set of instances, and what reads it.
struct InstanceSet {
    stored: Arc<StoredMeasurements>,
    engine: Arc<Engine>,
    model: Arc<Model>,
    /// One of the instances.
    graph: Arc<SegmentedGraph>,
    target: String,
    others: OtherTargets,
    whose: ReporterFilter,
}

/// Maximum number of instances, and of measurements of each and of all.
const MAX_INSTANCES: usize = 4_096;
const MAX_OF_INSTANCE: usize = 1_024;
const MAX_MEASURED: usize = 131_072;

/// Bytes that learning takes for each measurement: its row of columns, and its parts in other tables.
const ROW_BYTES: usize = 512;

impl Learning {
    /// Learns from other instances of the set of the call's graph. Returns nothing if it has no features.
    pub(super) async fn instances(
        &self,
        learner: Learner<'_>,
        source: &Source,
        others: OtherTargets,
    ) -> Result<Option<(Option<Expectation>, RelatedBasis)>, CallError> {
        let Some(features) = features_of(learner.graph) else {
            return Ok(None);
        };
        let set = InstanceSet {
            stored: Arc::clone(&self.stored),
            engine: Arc::clone(self.engine()),
            model: Arc::clone(learner.model),
            graph: Arc::clone(learner.graph),
            target: source.target.clone(),
            others,
            // What others measured of further instances counts as much as the client's own, so that all clients share a model.
            whose: match &source.whose {
                ReporterFilter::Only(client) => ReporterFilter::Only(client.clone()),
                ReporterFilter::First(_) | ReporterFilter::Everyone => ReporterFilter::Everyone,
            },
        };
        let known = self.instance_models.known(&set.key());
        let store = Arc::clone(self.stored.store()?);
        let given = known.given(store, set.learn()).await?;
        Ok(Some(match &given.model {
            Ok(model) => {
                let expectation = Expectation::of_instances(Arc::clone(model), Arc::new(features));
                (Some(expectation), model.basis)
            }
            Err(basis) => (None, *basis),
        }))
    }
}

impl InstanceSet {
    /// Identifies the set, and what else its model depends on but measurements.
    fn key(&self) -> Digest {
        let mut parts = vec![
            self.graph.whole.structure().0.to_vec(),
            self.model.manifest().name.clone().into_bytes(),
            self.model.manifest().version.to_le_bytes().to_vec(),
            self.target.clone().into_bytes(),
            format!("{:?}", self.whose).into_bytes(),
        ];
        match &self.others {
            OtherTargets::Named(names) => {
                // The order of names does not matter.
                let names: BTreeSet<&String> = names.iter().collect();
                parts.extend(names.into_iter().map(|name| name.clone().into_bytes()));
            }
            OtherTargets::All => parts.push(Vec::new()),
        }
        Digest::of_parts(
            "hlorank 2026 a set of instances",
            parts.iter().map(Vec::as_slice),
        )
    }

    /// Reads and learns the set.
    async fn learn(self) -> Result<LearnedSet, CallError> {
        let began = Instant::now();
        let changes = self.stored.store()?.changes();
        let mut held = self.engine.memory().hold(0)?;
        let mut lists = Vec::new();
        let mut measured = 0;
        for (subject, other_target) in self.subjects().await? {
            let Some(list) = self.list(&subject, other_target, &mut held).await? else {
                continue;
            };
            measured += list.measurements.distinct();
            lists.push(list);
            if measured >= MAX_MEASURED {
                break;
            }
        }
        let learn = move |_| InstanceModel::new(lists).map(Arc::new);
        let model = self.engine.pool().run(Class::Bulk, learn).await?.value;
        Ok(LearnedSet {
            model,
            changes,
            finished: Instant::now(),
            took: began.elapsed(),
        })
    }

    /// The instances on the call's target, then those on other targets, each with the number of its target.
    async fn subjects(&self) -> Result<Vec<(Subject, Option<usize>)>, CallError> {
        let store = self.stored.store()?;
        let structure = self.graph.whole.structure();
        let subject = |target: &str| Subject {
            target: target.to_owned(),
            graph: self.graph.hash,
        };
        let others = self.others.clone();
        let others = other_targets(&self.stored, &self.graph, &self.target, others).await?;
        let targets = others
            .iter()
            .enumerate()
            .map(|(number, name)| (name, Some(number)));
        let mut subjects = Vec::new();
        for (target, number) in once((&self.target, None)).chain(targets) {
            let left = MAX_INSTANCES - subjects.len().min(MAX_INSTANCES);
            let own = subject(target);
            let mut of_target = store.alike(own.clone(), structure, left).await?;
            // The instance of the call that learns is one of the set, so that all calls learn the same.
            of_target.push(own);
            of_target.sort_by_key(|subject| subject.graph.0);
            subjects.extend(of_target.into_iter().map(|subject| (subject, number)));
        }
        Ok(subjects)
    }

    /// Reads what was measured of an instance; nothing if its graph is not kept.
    async fn list(
        &self,
        subject: &Subject,
        other_target: Option<usize>,
        held: &mut HeldBytes,
    ) -> Result<Option<MeasuredInstance>, CallError> {
        let stored = &self.stored;
        let Some((graph, _of_graph)) = stored.read_graph(subject).await? else {
            return Ok(None);
        };
        let Some(features) = features_of(&graph) else {
            return Ok(None);
        };
        let mut of_list = 0;
        let drawn = stored.draw(subject, &graph, &self.whose, MAX_OF_INSTANCE, |bytes| {
            of_list += bytes;
            Ok(held.add(bytes)?)
        });
        let mut drawn = drawn.await?;
        let read_from = Arc::clone(&graph);
        let read = move |_| {
            let configs: Vec<&[u8]> = drawn.iter().map(|each| &each.config[..]).collect();
            let read = read_canonical(&read_from, &configs);
            read.map(|configurations| (Arc::new(configurations), take(&mut drawn)))
        };
        let read = self.engine.pool().run(Class::Bulk, read).await?.value;
        // An instance whose configurations cannot be read any more says nothing, and the others do.
        let Ok((configurations, drawn)) = read else {
            held.release(of_list);
            return Ok(None);
        };
        let terms = Terms {
            deadline: None,
            class: Class::Bulk,
            continues_request: false,
        };
        let batch = Arc::clone(&configurations);
        let scoring = self.engine.score(&self.model, &graph, batch, terms);
        let scores = scoring.await?.scores;
        let unit = self.model.manifest().unit;
        let measurements = move |_| {
            let points = points_of_measured(&configurations, &scores, unit).into_iter();
            let measured = points.zip(drawn);
            measurements_of(measured.map(|(point, each)| (point, each.outcome, true)))
        };
        let measurements = self
            .engine
            .pool()
            .run(Class::Bulk, measurements)
            .await?
            .value;
        // A row of columns takes the place of what was read.
        held.add(measurements.distinct() * ROW_BYTES)?;
        Ok(Some(MeasuredInstance {
            features: Arc::new(features),
            other_target,
            measurements,
        }))
    }
}

/// The features of an instance that has some.
fn features_of(graph: &SegmentedGraph) -> Option<InstanceFeatures> {
    let features = graph.whole.feature_graph()?.instance_features();
    (!features.is_empty()).then(|| features.clone())
}
