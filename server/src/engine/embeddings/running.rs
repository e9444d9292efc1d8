use std::{sync::Arc, time::Instant};

use super::{
    Embeddings, RowKey,
    waiting::{Queue, Waiter, Waiters},
};
use crate::{
    compute::{Worker, WorkerFailed},
    engine::{
        EngineError,
        block::{BlockRow, encoder_input},
    },
    model::ModelFailed,
};

/// Rows that a worker evaluates, and whose waiters get a result whatever happens.
pub(super) struct RunningBlock<'a> {
    embeddings: &'a Embeddings,
    /// Row and one of those who wait for it.
    rows: Vec<(RowKey, Waiter)>,
}

impl<'a> RunningBlock<'a> {
    /// Of rows of one model, at least one.
    pub(super) fn new(embeddings: &'a Embeddings, rows: Vec<(RowKey, Waiter)>) -> Self {
        Self { embeddings, rows }
    }

    /// Evaluates the rows, keeps the embeddings and hands them out.
    pub(super) fn run(mut self, queue: Queue, worker: Worker) {
        match self.evaluate(queue, worker) {
            Ok(embeddings) => self.deliver(embeddings),
            Err(error) => self.fail(&error.into()),
        }
    }

    /// The embeddings of the rows, which are sorted by segment first.
    fn evaluate(&mut self, queue: Queue, worker: Worker) -> Result<Vec<Arc<[f32]>>, ModelFailed> {
        self.rows.sort_by_key(|(_, waiter)| waiter.segment().digest);
        let rows: Vec<BlockRow<'_>> = self.rows.iter().map(|(_, waiter)| waiter.block_row()).collect();
        let model = &self.rows[0].1.call.model;
        let started = Instant::now();
        let embeddings = model.encode(worker, &encoder_input(&rows, queue.nodes, model.manifest().pad()))?;
        self.embeddings.backlog.ran(queue.model, rows.len() * queue.nodes, started.elapsed());
        let size = model.manifest().embedding_size;
        Ok(embeddings.chunks_exact(size).take(rows.len()).map(Arc::from).collect())
    }

    fn deliver(&mut self, embeddings: Vec<Arc<[f32]>>) {
        // Into the cache first: whoever finds nobody waiting for a row finds its embedding.
        let keys = self.rows.iter().map(|(key, _)| key);
        self.embeddings.cache.insert(keys.zip(&embeddings));
        for (waiters, embedding) in self.finished().into_iter().zip(embeddings) {
            waiters.iter().for_each(|waiter| waiter.deliver(Ok(Arc::clone(&embedding))));
        }
    }

    fn fail(&mut self, error: &EngineError) {
        for waiters in self.finished() {
            waiters.iter().for_each(|waiter| waiter.deliver(Err(error.clone())));
        }
    }

    /// Who waits for each of the rows, which nobody waits for from now on.
    fn finished(&mut self) -> Vec<Waiters> {
        let mut waiting = self.embeddings.waiting();
        self.rows.drain(..).map(|(key, _)| waiting.finish(&key)).collect()
    }
}

impl Drop for RunningBlock<'_> {
    /// Of a block that was not finished, because something panicked.
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.fail(&WorkerFailed.into());
        }
    }
}
