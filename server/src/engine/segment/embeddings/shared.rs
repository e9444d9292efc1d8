use std::sync::Arc;

use metrics::Gauge;
use parking_lot::{Mutex, MutexGuard};

use super::{cache::EmbeddingCache, waiting::Waiting};
use crate::{
    compute::{Class, ComputePool},
    device::DeviceProfile,
    engine::backlog::Backlog,
};

/// What calls and workers share.
pub(super) struct EmbeddingState {
    pub(super) pool: Arc<ComputePool>,
    pub(super) cache: Arc<EmbeddingCache>,
    pub(super) backlog: Arc<Backlog>,
    pub(super) waiting_rows: Gauge,
    waiting: Mutex<Waiting>,
}

impl EmbeddingState {
    pub(super) fn new(
        pool: Arc<ComputePool>,
        cache: Arc<EmbeddingCache>,
        backlog: Arc<Backlog>,
        waiting_rows: Gauge,
    ) -> Self {
        Self {
            waiting: Mutex::new(Waiting::new(pool.device())),
            pool,
            cache,
            backlog,
            waiting_rows,
        }
    }

    /// What the workers' sessions run on.
    pub(super) fn device(&self) -> &'static DeviceProfile {
        self.pool.device()
    }

    /// Number of workers among which waiting rows are divided. Those of small calls are not divided if every worker has
    /// other work to take.
    pub(super) fn takers(&self, class: Class) -> usize {
        let workers = self.pool.workers();
        // Blocks that nobody is free to take gain nothing, and each costs another run.
        if class == Class::Interactive && self.pool.queued() >= workers {
            1
        } else {
            workers
        }
    }

    /// The rows that wait. The state is consistent between any two of its operations, so a panic elsewhere does not
    /// spoil it.
    pub(super) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}
