use std::sync::Arc;

use crate::{
    engine::EngineError,
    memory::Memory,
    model::{RunSizes, WholeGraphModel},
};

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
pub(super) struct Room<'a> {
    pub(super) memory: &'a Arc<Memory>,
    /// Number of runs that can be made at the same time.
    pub(super) workers: usize,
    /// A run has a multiple of this many configurations.
    pub(super) multiple: usize,
}

/// The runs of a batch take at most this fraction of the memory of calls together, unless one run alone needs more.
const FRACTION: usize = 4;

impl Runs {
    /// Plans the runs over the configurations of a graph. Fails if one run needs more memory than a call may hold.
    pub(super) fn plan(
        model: &WholeGraphModel,
        sizes: RunSizes,
        room: &Room<'_>,
    ) -> Result<Self, EngineError> {
        let settings = model.settings();
        let of_batch = settings.chunk_configs.min(sizes.configs).max(1);
        let bytes = |configs| model.growth().bytes(RunSizes { configs, ..sizes });
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
            return Err(EngineError::graph_too_large(
                model.facts(),
                sizes,
                bytes,
                limit,
            ));
        }
        // At least one run, even if it alone needs more than the share.
        let at_once = (share / bytes.max(1)).clamp(1, workers);
        Ok(Self {
            configs,
            at_once,
            bytes,
        })
    }

    /// Fails if the smallest run over a graph needs more memory than a call may hold.
    pub(super) fn check(
        model: &WholeGraphModel,
        sizes: RunSizes,
        room: &Room<'_>,
    ) -> Result<(), EngineError> {
        let smallest = RunSizes {
            configs: 1,
            ..sizes
        };
        Self::plan(model, smallest, room).map(drop)
    }
}
