use std::{ops::Range, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};

use super::{EngineError, backlog::Backlog};
use crate::{
    compute::{Class, ComputePool, Worker},
    memory::Memory,
    model::ModelFailed,
    runtime::Interrupt,
};

/// Stops the runs of a call that was dropped: a chunk of a large graph takes long.
struct InterruptOnDrop(Arc<Interrupt>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What all evaluations share.
pub(super) struct Resources {
    pub(super) pool: Arc<ComputePool>,
    pub(super) backlog: Arc<Backlog>,
    pub(super) memory: Arc<Memory>,
}

impl Resources {
    /// Scores each of the chunks, and returns what each gave, in order. Dropping the future stops the
    /// runs in progress by the interrupt.
    pub(super) async fn score_in_chunks<T: Send + 'static>(
        &self,
        chunks: Vec<Range<usize>>,
        class: Class,
        interrupt: Interrupt,
        score: impl Fn(Worker, Range<usize>, &Interrupt) -> Result<T, ModelFailed>
        + Send
        + Sync
        + 'static,
    ) -> Result<Vec<T>, EngineError> {
        let score = Arc::new(score);
        // The interrupt stops all chunks when this function returns, so an error of one chunk ends
        // the runs of the others as well.
        let interrupt = InterruptOnDrop(Arc::new(interrupt));
        let chunks = chunks.into_iter().map(|chunk| {
            let score = Arc::clone(&score);
            let run = move |worker, interrupt: &Interrupt| score(worker, chunk, interrupt);
            let scored = self.pool.run_session(class, Arc::clone(&interrupt.0), run);
            async { Ok::<_, EngineError>(scored.await??) }
        });
        // Two for each worker, so that none is idle between two runs, and a call with many chunks
        // does not queue all of them before the work of others.
        stream::iter(chunks)
            .buffered(2 * self.pool.workers())
            .try_collect()
            .await
    }
}
