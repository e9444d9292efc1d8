use std::{sync::Arc, time::Instant};

use super::{
    Embeddings, RowKey,
    waiting::{Queue, Waiter, Waiters},
};
use crate::{
    compute::{Worker, WorkerFailed},
    engine::{EngineError, block::encoder_input, plan::PlannedRow},
    model::ModelFailed,
};

/// Rows that a worker evaluates, and whose waiters get a result whatever happens. Where the rows of several calls fail,
/// each half of them is evaluated apart, so that in the end those fail whose own rows do.
pub(super) struct RunningBlock {
    embeddings: Arc<Embeddings>,
    queue: Queue,
    /// Row and one of those who wait for it.
    rows: Vec<(RowKey, Waiter)>,
}

impl RunningBlock {
    /// Of rows of one queue, at least one.
    pub(super) fn new(embeddings: &Arc<Embeddings>, queue: Queue, rows: Vec<(RowKey, Waiter)>) -> Self {
        Self { embeddings: Arc::clone(embeddings), queue, rows }
    }

    /// Evaluates the rows, keeps the embeddings and hands them out.
    pub(super) fn run(mut self, worker: Worker) {
        match self.evaluate(worker) {
            Ok(embeddings) => self.deliver(embeddings),
            Err(error) => self.fail(&error.into()),
        }
    }

    /// The embeddings of the rows, which are sorted by segment first.
    fn evaluate(&mut self, worker: Worker) -> Result<Vec<Arc<[f32]>>, ModelFailed> {
        self.rows.sort_by_key(|(_, waiter)| waiter.planned_row().segment.digest);
        let rows: Vec<PlannedRow<'_>> = self.rows.iter().map(|(_, waiter)| waiter.planned_row()).collect();
        let (model, nodes) = (&self.rows[0].1.call.model, self.queue.nodes);
        let started = Instant::now();
        let manifest = model.manifest();
        let input = encoder_input(&rows, nodes, manifest.task().kind(), manifest.pad());
        let embeddings = model.encode(worker, &input)?;
        self.embeddings.backlog.ran(self.queue.model, rows.len() * nodes, started.elapsed());
        let size = model.manifest().embedding_size;
        Ok(embeddings.chunks_exact(size).take(rows.len()).map(Arc::from).collect())
    }

    fn deliver(&mut self, embeddings: Vec<Arc<[f32]>>) {
        // Into the cache first: whoever finds nobody waiting for a row finds its embedding.
        let keys = self.rows.iter().map(|(key, _)| key);
        self.embeddings.cache.insert(keys.zip(&embeddings));
        let finished = self.embeddings.waiting().finish(self.rows.drain(..));
        for (waiters, embedding) in finished.into_iter().zip(embeddings) {
            waiters.iter().for_each(|waiter| waiter.deliver(Ok(Arc::clone(&embedding))));
        }
    }

    /// Fails the call that is to blame, or finds it out.
    fn fail(&mut self, error: &EngineError) {
        let mut waiting = self.embeddings.waiting();
        if self.rows.len() > 1 && !waiting.are_of_one_call(&self.rows) {
            drop(waiting);
            return self.run_apart();
        }
        let finished: Vec<Waiters> = waiting.finish(self.rows.drain(..));
        drop(waiting);
        finished.iter().flatten().for_each(|waiter| waiter.deliver(Err(error.clone())));
    }

    /// Has each half evaluated by itself, in turns with other work.
    fn run_apart(&mut self) {
        let half = self.rows.split_off(self.rows.len() / 2);
        for rows in [std::mem::take(&mut self.rows), half] {
            let block = Self::new(&self.embeddings, self.queue, rows);
            self.embeddings.pool.spawn(self.queue.class, move |worker| block.run(worker));
        }
    }
}

impl Drop for RunningBlock {
    /// Of a block that was not finished, because something panicked.
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.fail(&WorkerFailed.into());
        }
    }
}
