use std::{ops::Range, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};

use super::{EngineError, backlog::Backlog};
use crate::{
    compute::{Class, ComputePool, Worker},
    device::DeviceProfile,
    memory::Memory,
    model::ModelFailed,
};

/// What all evaluations share.
pub(super) struct Resources {
    pub(super) pool: Arc<ComputePool>,
    pub(super) backlog: Arc<Backlog>,
    pub(super) memory: Arc<Memory>,
}

impl Resources {
    /// What the workers' sessions run on.
    pub(super) fn device(&self) -> &'static DeviceProfile {
        self.pool.device()
    }

    /// Scores `0..count` in chunks of `at_once`, and returns what each chunk gave, in order.
    pub(super) async fn score_in_chunks<T: Send + 'static>(
        &self,
        count: usize,
        at_once: usize,
        class: Class,
        score: impl Fn(Worker, Range<usize>) -> Result<T, ModelFailed> + Send + Sync + 'static,
    ) -> Result<Vec<T>, EngineError> {
        let score = Arc::new(score);
        let chunks = (0..count).step_by(at_once).map(|start| {
            let (score, chunk) = (Arc::clone(&score), start..count.min(start + at_once));
            let scored = self.pool.run(class, move |worker| score(worker, chunk));
            async { Ok::<_, EngineError>(scored.await?.value?) }
        });
        // Enough that no worker is idle.
        stream::iter(chunks).buffered(2 * self.pool.workers()).try_collect().await
    }
}
