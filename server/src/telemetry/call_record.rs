use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, SegmentedGraph};
use hlorank_proto::v1::ReuseCounts;

use crate::{engine::Stages, metrics::ModelSeries, model::Model};

/// Where a call leaves what it is about, for whoever counts, logs and traces it once it has ended. Clones are one
/// record; a call that nobody observes leaves it unread.
#[derive(Clone, Default)]
pub struct CallRecord(Arc<Record>);

#[derive(Default)]
struct Record {
    request_bytes: AtomicU64,
    facts: Mutex<Facts>,
}

/// What a call was about.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// The model that was selected, as it is counted.
    pub(super) series: Option<Arc<ModelSeries>>,
    /// Name and version of the model that answers.
    pub(super) model: Option<(String, u64)>,
    pub(super) graph: Option<GraphFacts>,
    /// Batches that were scored.
    pub(super) batches: u64,
    /// Of all batches.
    pub(super) reuse: ReuseCounts,
    /// In the order in which they ended.
    pub(super) stages: Vec<Stage>,
}

#[derive(Clone, Copy)]
pub(super) struct GraphFacts {
    pub(super) hash: Digest,
    pub(super) nodes: usize,
    /// It was not read for this call.
    pub(super) cached: bool,
}

/// A part of a call.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) started: Instant,
    pub(super) ended: Instant,
}

/// Stages of one call that are kept: those of the first batches of a stream.
const MAX_STAGES: usize = 128;

/// Stages that are shorter are not kept.
const SHORTEST: Duration = Duration::from_micros(1);

impl CallRecord {
    /// The call is counted as one of this model.
    pub fn selected(&self, series: &Arc<ModelSeries>) {
        self.facts().series = Some(Arc::clone(series));
    }

    /// The graph that the call is about, which was read until now; for no time where it was cached.
    pub fn found(&self, graph: &SegmentedGraph, featurize: Duration) {
        let (now, mut facts) = (Instant::now(), self.facts());
        let cached = featurize.is_zero();
        facts.graph = Some(GraphFacts { hash: graph.hash, nodes: graph.summary.nodes, cached });
        facts.spent("featurize", now.checked_sub(featurize).unwrap_or(now), now);
    }

    /// The version that answers.
    pub fn answered_by(&self, model: &Model) {
        let manifest = model.manifest();
        self.facts().model = Some((manifest.name.clone(), manifest.version));
    }

    /// One more batch was scored, for which the engine was asked at `asked`; `reuse` is of all batches.
    pub fn scored(&self, reuse: &ReuseCounts, asked: Instant, stages: &Stages) {
        let mut facts = self.facts();
        facts.batches += 1;
        facts.reuse = *reuse;
        let taken = asked + stages.waited;
        facts.spent("queue", asked, taken);
        facts.spent("parse", taken, stages.planned);
        facts.spent("encode", stages.planned, stages.encoded);
        facts.spent("head", stages.encoded, stages.scored);
    }

    /// The scores were ranked until now.
    pub fn ranked(&self, started: Instant) {
        self.facts().spent("rank", started, Instant::now());
    }

    /// Bytes of the call's messages that came in, as they were sent.
    pub(super) fn received(&self, bytes: u64) {
        self.0.request_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn request_bytes(&self) -> u64 {
        self.0.request_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    fn spent(&mut self, name: &'static str, started: Instant, ended: Instant) {
        if ended.saturating_duration_since(started) >= SHORTEST && self.stages.len() < MAX_STAGES {
            self.stages.push(Stage { name, started, ended });
        }
    }
}
