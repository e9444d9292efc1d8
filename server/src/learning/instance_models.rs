//! What sets of instances taught. Trees of many instances take seconds to learn, so that a set of them is learned in the background: the
//! first calls wait for it, as long as they may, and later ones are answered from the last model.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use hlorank_adaptation::TaughtByLists;
use hlorank_graph::Digest;
use quick_cache::sync::Cache;
use tokio::time::timeout;

use crate::{call::CallError, compute::WorkerFailed, metrics::CacheSizes, store::MeasurementStore};

/// What sets of instances taught.
pub(super) struct InstanceModels(Cache<Digest, Arc<KnownSet>>);

/// What a set of instances taught, as far as it was read.
#[derive(Default)]
pub(super) struct KnownSet {
    learned: ArcSwapOption<LearnedSet>,
    /// Held while the set is read and learned, so that this happens once.
    learning: tokio::sync::Mutex<()>,
    is_waiting: AtomicBool,
}

pub(super) struct LearnedSet {
    pub(super) taught: TaughtByLists,
    /// Number of changes of the store before it was read.
    pub(super) changes: u64,
    pub(super) finished: Instant,
    pub(super) took: Duration,
}

/// Maximum number of sets, whose models take less than a megabyte each.
const SETS: usize = 64;
const MODEL_BYTES: u64 = 1 << 20;

/// A set that changes all the time is learned again after this many times as long as it took.
const REST: u32 = 10;

/// Share of the time left until its deadline, as a divisor, that a call waits for a set that was never learned, and how long it waits
/// without a deadline.
const SHARE_OF_WAIT: u32 = 2;
const WAIT: Duration = Duration::from_secs(2);

impl InstanceModels {
    /// Sets the gauge to the current state.
    pub(super) fn sample(&self, sizes: &CacheSizes) {
        let bytes = self.0.iter().map(|(_, known)| known.bytes() as u64);
        sizes.instances.set(bytes.sum(), SETS as u64 * MODEL_BYTES);
    }

    /// The set of a key.
    pub(super) fn known(&self, key: &Digest) -> Arc<KnownSet> {
        let known = self
            .0
            .get_or_insert_with(key, || Ok::<_, Infallible>(Arc::default()));
        known.unwrap_or_default()
    }
}

impl Default for InstanceModels {
    fn default() -> Self {
        Self(Cache::new(SETS))
    }
}

impl KnownSet {
    /// Bytes of its model.
    fn bytes(&self) -> usize {
        let learned = self.learned.load();
        let model = learned.as_ref().and_then(|set| set.taught.0.as_ref());
        model.map_or(0, |model| model.bytes())
    }

    /// Whether the model of a set need not be learned again.
    fn is_current(learned: &LearnedSet, store: &MeasurementStore) -> bool {
        learned.changes == store.changes() || learned.finished.elapsed() < learned.took * REST
    }

    /// Returns what the set taught: what it taught last, if it was learned before. `learn` reads and learns it, for which a call with this
    /// much time left waits; nothing if it takes longer.
    pub(super) async fn given(
        self: &Arc<Self>,
        store: Arc<MeasurementStore>,
        learn: impl Future<Output = Result<LearnedSet, CallError>> + Send + 'static,
        left: Option<Duration>,
    ) -> Result<Option<Arc<LearnedSet>>, CallError> {
        let learned = self.learned.load_full();
        if let Some(learned) = &learned
            && (Self::is_current(learned, &store) || self.is_waiting.swap(true, Ordering::Relaxed))
        {
            return Ok(Some(Arc::clone(learned)));
        }
        // A call that ends early does not end the work, which the next one would begin again.
        let known = Arc::clone(self);
        let learning = tokio::spawn(async move {
            let _one = known.learning.lock().await;
            known.is_waiting.store(false, Ordering::Relaxed);
            let last = known.learned.load_full();
            if let Some(last) = last.filter(|last| Self::is_current(last, &store)) {
                return Ok(last);
            }
            let learned = Arc::new(learn.await?);
            known.learned.store(Some(Arc::clone(&learned)));
            Ok(learned)
        });
        if learned.is_some() {
            return Ok(learned);
        }
        let wait = left.map_or(WAIT, |left| left / SHARE_OF_WAIT);
        match timeout(wait, learning).await {
            Ok(learned) => learned.unwrap_or(Err(WorkerFailed.into())).map(Some),
            Err(_) => Ok(None),
        }
    }
}
