use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, SegmentedGraph};
use parking_lot::{Mutex, MutexGuard};
use tonic::Code;

use super::{
    audit::{AuditOutcome, AuditedChange, audit, outcome},
    request_id::RequestId,
};
use crate::{
    caller::Caller,
    metrics::{Method, ModelSeries},
    model::Model,
    outcome::{Reuse, Stages},
    refusal::Refused,
};

/// Collects what a call is about, until the call has ended and is counted, logged and traced. Clones share one record.
#[derive(Clone, Default)]
pub struct CallRecord(Arc<SharedRecord>);

#[derive(Default)]
struct SharedRecord {
    request_bytes: AtomicU64,
    facts: Mutex<Facts>,
}

/// What is known about a call.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// Name of the method.
    pub(super) method: &'static str,
    /// Whose call it is.
    pub(super) client: Option<Caller>,
    /// What the call asked to change.
    pub(super) change: Option<AuditedChange>,
    /// Whether the change goes on without its call, and is logged when it ends.
    pub(super) is_detached: bool,
    /// Metrics of the model that was selected.
    pub(super) series: Option<Arc<ModelSeries>>,
    /// Name and version of the model that answered.
    pub(super) model: Option<(String, u64)>,
    pub(super) graph: Option<GraphFacts>,
    /// Number of scored batches.
    pub(super) batches: u64,
    /// Sum over all batches.
    pub(super) reuse: Reuse,
    /// Stages, in the order in which they ended.
    pub(super) stages: Vec<CallStage>,
}

#[derive(Clone, Copy)]
pub(super) struct GraphFacts {
    pub(super) hash: Digest,
    pub(super) nodes: usize,
    /// Whether the graph was in the cache.
    pub(super) cached: bool,
}

/// One stage of a call.
#[derive(Clone, Copy)]
pub(super) struct CallStage {
    pub(super) name: &'static str,
    pub(super) started: Instant,
    pub(super) ended: Instant,
}

/// How a call to one of our services ended.
pub(super) struct EndedCall<'a> {
    pub(super) method: &'a Method,
    pub(super) code: Code,
    /// The reason in the `ErrorInfo` of a failed call.
    pub(super) reason: Option<&'a str>,
    pub(super) duration: Duration,
    pub(super) id: &'a RequestId,
    /// The address that the client connected to.
    pub(super) server: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) request_bytes: u64,
    pub(super) answer_bytes: u64,
}

/// Maximum number of stages that are kept per call, which covers the first batches of a stream.
const MAX_STAGES: usize = 128;

/// Minimum duration of a stage that is kept.
const MIN_STAGE: Duration = Duration::from_micros(1);

impl CallRecord {
    /// Records whose call it is.
    pub(crate) fn called_by(&self, client: Caller) {
        self.facts().client = Some(client);
    }

    /// Records more about what the call asked to change, and thereby that it did.
    pub(crate) fn changes(&self, describe: impl FnOnce(&mut AuditedChange)) {
        describe(self.facts().change.get_or_insert_default());
    }

    /// Runs a change to its end even if the call ends before, and then logs it.
    pub(crate) async fn audited<E: Refused>(
        self,
        change: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        self.facts().is_detached = true;
        let changed = change.await;
        self.facts().audit(outcome(&changed));
        changed
    }

    /// Records the metrics of the selected model.
    pub fn selected(&self, series: &Arc<ModelSeries>) {
        self.facts().series = Some(Arc::clone(series));
    }

    /// Records the graph of the call. Reading it took `featurize` and ended now; `featurize` is zero if it was cached.
    pub fn found(&self, graph: &SegmentedGraph, featurize: Duration) {
        let now = Instant::now();
        let mut facts = self.facts();
        let cached = featurize.is_zero();
        facts.graph = Some(GraphFacts {
            hash: graph.hash,
            nodes: graph.summary.nodes,
            cached,
        });
        facts.spent("featurize", now.checked_sub(featurize).unwrap_or(now), now);
    }

    /// Records the model version that answers.
    pub fn answered_by(&self, model: &Model) {
        let manifest = model.manifest();
        self.facts().model = Some((manifest.name.clone(), manifest.version));
    }

    /// Records a scored batch, which was passed to the engine at `asked`.
    pub fn scored(&self, reuse: Reuse, asked: Instant, stages: &Stages) {
        let mut facts = self.facts();
        facts.batches += 1;
        facts.reuse += reuse;
        // The engine reports how long the batch was queued, and when each later stage ended.
        let taken = asked + stages.waited;
        facts.spent("queue", asked, taken);
        facts.spent("parse", taken, stages.planned);
        facts.spent("encode", stages.planned, stages.encoded);
        facts.spent("head", stages.encoded, stages.scored);
    }

    /// Records that ranking ended now.
    pub fn ranked(&self, started: Instant) {
        self.facts().spent("rank", started, Instant::now());
    }

    /// Counts received bytes of request messages, before decompression.
    pub(super) fn received(&self, bytes: u64) {
        self.0.request_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn request_bytes(&self) -> u64 {
        self.0.request_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.facts.lock()
    }
}

impl Facts {
    /// Logs the change of the call.
    pub(super) fn audit(&self, outcome: AuditOutcome<'_>) {
        let client = self.client.as_ref().map(Caller::name);
        let change = self.change.clone().unwrap_or_default();
        audit(self.method, client.as_deref(), &change, outcome);
    }

    fn spent(&mut self, name: &'static str, started: Instant, ended: Instant) {
        if ended.saturating_duration_since(started) >= MIN_STAGE && self.stages.len() < MAX_STAGES {
            self.stages.push(CallStage {
                name,
                started,
                ended,
            });
        }
    }
}
