use std::{ops::Range, sync::Arc};

use hlorank_adaptation::statistics::scalar;

use crate::{
    device,
    engine::{EngineError, resources::Resources},
    memory::Memory,
    model::{Chunking, Permutations, RunSizes, WholeGraphModel, WholeGraphSettings},
};

/// The order in which the configurations of a batch are scored, and the chunks that this order is cut into. A model with
/// permutations scores every configuration once in each of several passes.
pub(super) struct Passes {
    /// Number of configurations.
    configs: usize,
    /// Configurations, pass after pass.
    pub(super) order: Vec<usize>,
    /// Ranges of `order`; none has configurations of two passes.
    pub(super) chunks: Vec<Range<usize>>,
}

/// How many configurations a run takes, and how many runs there are at the same time, so that they fit into the memory of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    /// Maximum number of configurations of a run.
    pub(super) configs: usize,
    /// Maximum number of runs at the same time; at least 1.
    pub(super) at_once: usize,
    /// Maximum number of bytes of a run beside its inputs.
    pub(super) bytes: usize,
}

/// What the runs of a batch may use.
pub(super) struct PassRoom {
    pub(super) memory: Arc<Memory>,
    /// Number of runs that can be made at the same time.
    pub(super) workers: usize,
    /// A run has a multiple of this many configurations.
    pub(super) multiple: usize,
}

/// The runs of a batch take at most this fraction of the memory of calls together, unless one run alone needs more.
const FRACTION: usize = 4;

impl Passes {
    /// Number of scores that all passes over `configs` configurations give.
    pub(super) fn scores(settings: &WholeGraphSettings, configs: usize) -> usize {
        configs.saturating_mul(permutations(settings, configs).map_or(1, |all| all.count as usize))
    }

    /// Plans the passes over `configs` configurations, with full chunks of a multiple of `multiple` of them.
    pub(super) fn new(settings: &WholeGraphSettings, configs: usize, multiple: usize) -> Self {
        // The configurations in the order of all passes.
        let order: Vec<usize> = match permutations(settings, configs) {
            Some(all) => (0..all.count)
                .flat_map(|number| all.order(number, configs))
                .collect(),
            None => (0..configs).collect(),
        };
        let at_once = settings
            .chunk_configs
            .min(configs)
            .max(1)
            .next_multiple_of(multiple);
        // Every pass has the same chunks, moved to where the pass begins in the order.
        let starts = (0..order.len()).step_by(configs.max(1));
        let pass = |start| {
            let chunks = cut(settings.chunking, configs, at_once);
            chunks.map(move |chunk| start + chunk.start..start + chunk.end)
        };
        Self {
            configs,
            chunks: starts.flat_map(pass).collect(),
            order,
        }
    }

    /// Number of passes; at least 1.
    pub(super) fn count(&self) -> usize {
        (self.order.len() / self.configs.max(1)).max(1)
    }

    /// Returns the score of every configuration: the mean over the passes, given all scores in the order of the passes.
    pub(super) fn mean(&self, scores: &[f32]) -> Vec<f32> {
        // In f64, a sum of up to 64 equal scores is exact, so their mean is that score to the last
        // bit.
        let mut sums = vec![0.0; self.configs];
        self.order
            .iter()
            .zip(scores)
            .for_each(|(&config, &score)| sums[config] += f64::from(score));
        let passes = scalar(self.count());
        #[expect(clippy::cast_possible_truncation, reason = "it is a mean of f32")]
        sums.into_iter()
            .map(|sum: f64| (sum / passes) as f32)
            .collect()
    }
}

/// The orders of a batch. One chunk needs none: an order would not change its scores.
fn permutations(settings: &WholeGraphSettings, configs: usize) -> Option<Permutations> {
    settings
        .permutations
        .filter(|_| configs > settings.chunk_configs)
}

/// Cuts `0..configs` into chunks of at most `at_once`.
fn cut(chunking: Chunking, configs: usize, at_once: usize) -> impl Iterator<Item = Range<usize>> {
    let chunks = configs.div_ceil(at_once);
    let (size, longer) = match chunking {
        Chunking::Full => (at_once, 0),
        Chunking::Even => (configs / chunks.max(1), configs % chunks.max(1)),
    };
    // If chunks are even, the first `longer` ones have one more configuration than the others. If
    // they are full, the last one may be shorter.
    let start = move |chunk: usize| configs.min(chunk * size + chunk.min(longer));
    (0..chunks).map(move |chunk| start(chunk)..start(chunk + 1))
}

impl PassRoom {
    pub(super) fn new(resources: &Resources, model: &WholeGraphModel) -> Self {
        // The size of a chunk does not matter if scores do not depend on it.
        let multiple = if model.settings.batch_dependent {
            1
        } else {
            device::ROW_MULTIPLE
        };
        Self {
            memory: Arc::clone(&resources.memory),
            workers: resources.pool.workers(),
            multiple,
        }
    }
}

impl Runs {
    /// Plans the runs over the configurations of a graph. Fails if one run needs more memory than a call may hold.
    pub(super) fn plan(
        model: &WholeGraphModel,
        sizes: RunSizes,
        room: &PassRoom,
    ) -> Result<Self, EngineError> {
        let settings = &model.settings;
        let of_batch = settings.chunk_configs.min(sizes.configs).max(1);
        let bytes = |configs| model.growth.bytes(RunSizes { configs, ..sizes });
        let limit = room.memory.largest();
        let share = limit / FRACTION;
        let workers = room.workers.max(1);
        let mut configs = of_batch.next_multiple_of(room.multiple);
        // Small runs on all workers are better than large ones on a few. The size is fixed for a
        // model whose scores depend on the chunk.
        while !settings.batch_dependent
            && configs > room.multiple
            && bytes(configs) > share / workers
        {
            configs = (configs / 2).next_multiple_of(room.multiple);
        }
        let bytes = bytes(configs);
        if bytes > limit {
            return Err(EngineError::GraphTooLarge {
                model: model.facts.name.clone(),
                nodes: sizes.nodes,
                edges: sizes.edges,
                bytes,
                limit,
            });
        }
        // At least one run, even if it alone needs more than the share.
        let at_once = (share / bytes.max(1)).clamp(1, workers);
        Ok(Self {
            configs,
            at_once,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelNodes;

    fn settings(chunk_configs: usize, chunking: Chunking) -> WholeGraphSettings {
        let nodes = ModelNodes::All;
        let permutations = None;
        WholeGraphSettings {
            chunk_configs,
            batch_dependent: true,
            nodes,
            chunking,
            permutations,
        }
    }

    #[test]
    fn full_chunks_leave_a_shorter_one_and_even_ones_differ_by_one_at_most() {
        for (chunking, count, expected) in [
            (Chunking::Full, 300, &[128, 128, 44][..]),
            (Chunking::Full, 128, &[128]),
            (Chunking::Full, 0, &[]),
            (Chunking::Even, 300, &[100, 100, 100]),
            (Chunking::Even, 257, &[86, 86, 85]),
            (Chunking::Even, 129, &[65, 64]),
            (Chunking::Even, 128, &[128]),
            (Chunking::Even, 1, &[1]),
            (Chunking::Even, 0, &[]),
        ] {
            let passes = Passes::new(&settings(128, chunking), count, 1);
            let sizes = passes.chunks.iter().map(Range::len);
            assert!(
                sizes.eq(expected.iter().copied()),
                "{count} {:?}",
                passes.chunks
            );
        }
    }

    #[test]
    fn a_full_chunk_fills_the_vector_registers() {
        let settings = WholeGraphSettings {
            batch_dependent: false,
            ..settings(5, Chunking::Full)
        };
        assert_eq!(Passes::new(&settings, 19, 4).chunks, [0..8, 8..16, 16..19]);
        assert_eq!(Passes::new(&settings, 3, 4).chunks.len(), 1);
    }
}
