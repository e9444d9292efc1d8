use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hlorank_graph::SegmentedGraph;

use super::plan::Plan;
use crate::model::SegmentModel;

/// The last batch of each of the most recently used graphs, so that a new version of a model can evaluate their rows
/// before it serves.
pub(super) struct RecentBatches {
    /// Maximum number of graphs; 0 remembers nothing.
    graphs: usize,
    /// The most recent one first.
    batches: Mutex<VecDeque<RecentBatch>>,
}

/// A batch that was scored.
#[derive(Clone)]
pub(super) struct RecentBatch {
    /// Name of the model that scored it.
    model: String,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) plan: Arc<Plan>,
}

/// Maximum number of rows, summed over the distinct configurations, of a batch that is remembered: 4 bytes each.
const MAX_REMEMBERED_ROWS: usize = 1 << 20;

impl RecentBatches {
    pub(super) fn new(graphs: usize) -> Self {
        Self {
            graphs,
            batches: Mutex::default(),
        }
    }

    /// Remembers a batch. It replaces the batch before of the same graph.
    pub(super) fn remember(
        &self,
        model: &SegmentModel,
        graph: &Arc<SegmentedGraph>,
        plan: &Arc<Plan>,
    ) {
        if self.graphs == 0 || plan.rows_of_configs() > MAX_REMEMBERED_ROWS {
            return;
        }
        let name = &model.facts().name;
        let batch = RecentBatch {
            model: name.clone(),
            graph: Arc::clone(graph),
            plan: Arc::clone(plan),
        };
        let mut batches = self.batches();
        let same = |known: &RecentBatch| known.graph.hash == graph.hash && &known.model == name;
        let known = batches.iter().position(same);
        // Freed after the lock is released.
        let _forgotten = match known {
            Some(place) => batches.remove(place),
            None if batches.len() == self.graphs => batches.pop_back(),
            None => None,
        };
        batches.push_front(batch);
        drop(batches);
    }

    /// Returns the batches that versions of a model scored, the most recent one first.
    pub(super) fn of_model(&self, name: &str) -> Vec<RecentBatch> {
        self.batches()
            .iter()
            .filter(|batch| batch.model == name)
            .cloned()
            .collect()
    }

    fn batches(&self) -> MutexGuard<'_, VecDeque<RecentBatch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
