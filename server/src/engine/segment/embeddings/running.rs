use std::{mem::take, sync::Arc, time::Instant};

use super::{
    cache::EmbeddingCache,
    call::{MIN_SEGMENTS, Queue, RowKey, Waiter},
    waiting::{Embeddings, NextRows, Waiters},
};
use crate::{
    compute::{Class, WatchedRun, Worker, WorkerFailed},
    engine::{
        EngineError,
        segment::{block::Block, plan::PlannedRow},
    },
    model::{EncoderInput, ModelFailed, SegmentModel, SegmentTensors},
    runtime::Interrupt,
};

/// Has a worker evaluate the next rows of a queue when it is their turn.
pub(super) fn queue_block(shared: &Arc<Embeddings>, queue: Queue) {
    let own = Arc::clone(shared);
    shared.pool.queue(queue.class, move |worker| {
        evaluate_next(&own, queue, worker);
    });
}

/// Evaluates the next rows of a queue, as a task of it.
pub(super) fn evaluate_next(shared: &Arc<Embeddings>, queue: Queue, worker: Worker) {
    let is_small = queue.class == Class::Bulk && shared.pool.is_interactive();
    let NextRows {
        rows,
        cancelled,
        more,
    } = shared
        .waiting()
        .take(queue, shared.takers(queue.class), is_small);
    drop(cancelled);
    // Queued before this block runs, so that another worker can take the rest meanwhile.
    if more {
        queue_block(shared, queue);
    }
    if !rows.is_empty() {
        RunningBlock {
            shared: Arc::clone(shared),
            queue,
            rows,
        }
        .run(worker);
    }
    // The rest is taken here unless another worker has begun.
    if more && shared.pool.at_once(queue.class).is_some() && shared.waiting().add_task(queue) {
        evaluate_next(shared, queue, worker);
    }
}

/// Rows that a worker evaluates. The calls that wait for them get a result whatever happens. If a block with rows of
/// several calls fails, each half is evaluated by itself, so that only the calls whose own rows fail do.
struct RunningBlock {
    shared: Arc<Embeddings>,
    queue: Queue,
    /// Each row with one of the calls that wait for it.
    rows: Vec<(RowKey, Waiter)>,
}

impl RunningBlock {
    /// Evaluates the rows, caches the embeddings and delivers them.
    fn run(mut self, worker: Worker) {
        match self.evaluate(worker) {
            Ok(embeddings) => self.deliver(embeddings),
            Err(error) if error.is_unneeded() => self.run_again(),
            Err(error) => self.fail(&error.into()),
        }
    }

    /// Sorts the rows by segment, and returns their embeddings. The run is stopped if no call waits for them any more.
    fn evaluate(&mut self, worker: Worker) -> Result<Vec<Arc<[f32]>>, ModelFailed> {
        // Equal segments become neighbours, even of different calls, and the block has each once.
        self.rows
            .sort_by_key(|(_, waiter)| waiter.planned_row().facts().digest);
        let rows: Vec<PlannedRow<'_>> = self
            .rows
            .iter()
            .map(|(_, waiter)| waiter.planned_row())
            .collect();
        // All rows of a queue are of one model.
        let model = &self.rows[0].1.call.model;
        let started = Instant::now();
        let embeddings = self.encode(&rows, model, worker)?;
        let queue = &self.queue;
        let padded = rows.len().next_multiple_of(queue.multiple) * queue.nodes;
        self.shared
            .backlog
            .ran(queue.model, padded, started.elapsed());
        let size = model.settings.embedding_size;
        Ok(embeddings
            .chunks_exact(size)
            .take(rows.len())
            .map(Arc::from)
            .collect())
    }

    /// Returns `[rows, D]` embeddings of rows, and of the copies that pad their block.
    fn encode(
        &self,
        rows: &[PlannedRow<'_>],
        model: &SegmentModel,
        worker: Worker,
    ) -> Result<Vec<f32>, ModelFailed> {
        let block = Block::new(rows, self.queue.nodes);
        let interrupt = Arc::new(model.interrupt()?);
        // Watched until it has ended, whether it fails or not.
        let _watched = self.watch(worker, Arc::clone(&interrupt));
        let run = EncoderRun {
            model,
            block: &block,
            worker,
            interrupt: &interrupt,
        };
        run.embeddings(&self.shared.cache)
    }

    /// Watches the run of these rows. If it hangs, the calls that wait for them fail.
    fn watch(&self, worker: Worker, interrupt: Arc<Interrupt>) -> WatchedRun {
        let keys: Arc<[RowKey]> = self.rows.iter().map(|(key, _)| *key).collect();
        let shared = Arc::clone(&self.shared);
        let awaited = Arc::clone(&keys);
        let is_needed = move || {
            let waiting = shared.waiting();
            awaited.iter().any(|key| waiting.is_awaited(key))
        };
        let shared = Arc::clone(&self.shared);
        let abandon = move || {
            let finished = shared.waiting().finish(keys.iter().copied());
            fail_all(&finished, &WorkerFailed.into());
        };
        self.shared
            .pool
            .watch_run(worker, interrupt, is_needed, abandon)
    }

    fn deliver(&mut self, embeddings: Vec<Arc<[f32]>>) {
        // The cache first: a call that finds no waiter for a row then finds its embedding.
        let keys = self.rows.iter().map(|(key, _)| key);
        self.shared.cache.insert(keys.zip(&embeddings));
        let finished = self
            .shared
            .waiting()
            .finish(self.rows.drain(..).map(|(key, _)| key));
        for (waiters, embedding) in finished.into_iter().zip(embeddings) {
            waiters
                .iter()
                .for_each(|waiter| waiter.deliver(Ok(Arc::clone(&embedding))));
        }
    }

    /// Fails the call that the rows belong to, or splits the block. If the run took too long, all calls fail: each half
    /// might take as long.
    fn fail(&mut self, error: &EngineError) {
        let is_expired = matches!(error, EngineError::Model(failed) if failed.is_expired());
        let mut waiting = self.shared.waiting();
        if self.rows.len() > 1 && !is_expired && !waiting.are_of_one_call(&self.rows) {
            drop(waiting);
            // Each half by itself, in turns with other work.
            let half = self.rows.split_off(self.rows.len() / 2);
            for rows in [take(&mut self.rows), half] {
                self.spawn(rows);
            }
            return;
        }
        let finished: Vec<Waiters> = waiting.finish(self.rows.drain(..).map(|(key, _)| key));
        drop(waiting);
        fail_all(&finished, error);
    }

    /// Evaluates again the rows that a call began to wait for after the run was stopped because no call did.
    fn run_again(&mut self) {
        let rows = take(&mut self.rows);
        let mut waiting = self.shared.waiting();
        let (rows, unneeded): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .partition(|(key, _)| waiting.is_awaited(key));
        let finished = waiting.finish(unneeded.iter().map(|(key, _)| *key));
        drop(waiting);
        // Only after the lock is released: the last waiter of a call frees its plan.
        drop((finished, unneeded));
        if !rows.is_empty() {
            self.spawn(rows);
        }
    }

    fn spawn(&self, rows: Vec<(RowKey, Waiter)>) {
        let block = Self {
            shared: Arc::clone(&self.shared),
            queue: self.queue,
            rows,
        };
        self.shared
            .pool
            .spawn(self.queue.class, move |worker| block.run(worker));
    }
}

impl Drop for RunningBlock {
    /// Fails the rows of a block that was not finished because something panicked.
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.fail(&WorkerFailed.into());
        }
    }
}

fn fail_all(waiters: &[Waiters], error: &EngineError) {
    waiters
        .iter()
        .flatten()
        .for_each(|waiter| waiter.deliver(Err(error.clone())));
}

/// A run of the encoder of a model on a block of rows.
struct EncoderRun<'a> {
    pub(super) model: &'a SegmentModel,
    block: &'a Block<'a>,
    pub(super) worker: Worker,
    interrupt: &'a Interrupt,
}

impl EncoderRun<'_> {
    /// Returns `[rows, D]` embeddings of the rows, copies included.
    pub(super) fn embeddings(&self, cache: &EmbeddingCache) -> Result<Vec<f32>, ModelFailed> {
        let Self {
            model,
            block,
            worker,
            interrupt,
        } = *self;
        let input = block.row_input(&model.facts);
        if model.settings.is_split {
            let tensors = self.tensors(cache, input.nodes)?;
            return model.encode_rows(worker, &tensors, &input, interrupt);
        }
        // A lone segment is sent several times: in a run of one segment, some matrix products round
        // differently.
        let input = match &*block.segments {
            &[only] => block.add_segments(input, &[only; MIN_SEGMENTS], &model.facts),
            segments => block.add_segments(input, segments, &model.facts),
        };
        model.encode(worker, &input, interrupt)
    }

    /// Returns what the model computes of each segment alone, padded to `nodes`, and caches it beside the embeddings.
    fn tensors(
        &self,
        cache: &EmbeddingCache,
        nodes: usize,
    ) -> Result<Vec<SegmentTensors>, ModelFailed> {
        let model = self.model;
        let digest = model.facts.digest;
        let mut all = Vec::with_capacity(self.block.segments.len());
        let mut missing = Vec::new();
        let mut places = Vec::new();
        for row in &self.block.segments {
            let key = RowKey::of_segment(digest, row.facts().digest, nodes);
            let values = cache.segment(&key);
            let known = values.and_then(|values| model.known_tensors(nodes, values));
            if known.is_none() {
                missing.push(*row);
                places.push((all.len(), key));
            }
            all.push(known);
        }
        if !missing.is_empty() {
            // One run evaluates all that are missing.
            let input = self
                .block
                .add_segments(EncoderInput::default(), &missing, &model.facts);
            let evaluated = model.tensors(self.worker, &input, self.interrupt)?;
            for ((place, key), tensors) in places.into_iter().zip(evaluated) {
                cache.insert_segment(key, tensors.values());
                all[place] = Some(tensors);
            }
        }
        // Every place is filled by now: a run returns the tensors of each of its segments.
        Ok(all.into_iter().flatten().collect())
    }
}
