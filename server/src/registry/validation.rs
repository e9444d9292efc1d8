//! What a version must show before it serves: that it answers what its exporter saw, and soon enough.

use std::{io, path::Path, sync::Arc, time::Duration};

use futures::executor::block_on;
use hlorank_graph::{Configurations, FileError, Limits, SegmentedGraph, Task, read_golden_cases};

use crate::{
    compute::{Class, ComputePool, Worker, WorkerFailed, yield_to_others},
    engine::{Engine, EngineError, Terms},
    model::{Artifact, ArtifactError, Model, Rejection},
};

/// The golden cases of an artifact, ready to be scored.
pub(super) struct GoldenCases(Vec<GoldenCase>);

struct GoldenCase {
    graph: Arc<SegmentedGraph>,
    configurations: Configurations,
    scores: Vec<f32>,
}

/// Why a version was rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum ValidationError {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error(transparent)]
    Golden(#[from] FileError),
    #[error("golden.npz has no cases")]
    NoGoldenCases,
    #[error("golden case {case} has {found} configurations, the model ranks {expected}")]
    GoldenTask { case: usize, found: Task, expected: Task },
    #[error("golden case {case}: {source}")]
    Evaluation { case: usize, source: EngineError },
    #[error(
        "golden case {case}, configuration {config}: the score is {found}, the exporter saw {expected}; {tolerance:e} \
         is allowed"
    )]
    GoldenMismatch { case: usize, config: usize, found: f32, expected: f32, tolerance: f32 },
    #[error(
        "the golden cases take {found:?}, {ratio:.1} times as long as by version {version}; at most {limit} times is \
         allowed (--max-slowdown)"
    )]
    TooSlow { version: u64, found: Duration, ratio: f64, limit: f64 },
    #[error("it ranks {found}, version {version} ranks {expected}; give it a name of its own")]
    OtherTask { version: u64, found: Task, expected: Task },
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
}

/// Of the largest absolute score of a case, or of 1.
const GOLDEN_TOLERANCE: f32 = 1e-5;

/// Runs whose fastest counts.
const TIMED_RUNS: usize = 5;

impl ValidationError {
    fn reason(&self) -> &'static str {
        match self {
            Self::Artifact(error) => error.reason(),
            Self::Golden(_) => "GOLDEN_UNREADABLE",
            Self::NoGoldenCases => "GOLDEN_EMPTY",
            Self::GoldenTask { .. } | Self::OtherTask { .. } => "TASK_MISMATCH",
            Self::Evaluation { source: EngineError::InvalidOutput { .. }, .. } => "SCORE_NOT_FINITE",
            Self::Evaluation { .. } => "EVALUATION_FAILED",
            Self::GoldenMismatch { .. } => "GOLDEN_MISMATCH",
            Self::TooSlow { .. } => "TOO_SLOW",
            Self::Worker(_) => "SERVER_FAILED",
        }
    }
}

impl From<ValidationError> for Rejection {
    fn from(error: ValidationError) -> Self {
        let transient = matches!(&error, ValidationError::Artifact(error) if error.is_passing());
        Self { reason: error.reason(), message: error.to_string(), transient }
    }
}

impl GoldenCases {
    pub(super) fn read(artifact: &Artifact) -> Result<Self, ValidationError> {
        let cases =
            read_golden_cases(Path::new("golden.npz"), artifact.golden().to_vec(), &Limits::default())?;
        if cases.is_empty() {
            return Err(ValidationError::NoGoldenCases);
        }
        let expected = artifact.manifest().task();
        for (case, golden) in cases.iter().enumerate() {
            let found = golden.graph.task();
            if found != expected {
                return Err(ValidationError::GoldenTask { case, found, expected });
            }
        }
        let ready = cases.into_iter().map(|golden| GoldenCase {
            graph: Arc::new(SegmentedGraph::new(&golden.graph)),
            configurations: golden.configurations,
            scores: golden.scores,
        });
        Ok(Self(ready.collect()))
    }

    /// Checks that the sessions of a bench's worker answer what was expected.
    pub(super) fn check(&self, model: &Arc<Model>, bench: &Bench) -> Result<(), ValidationError> {
        self.numbered()
            .try_for_each(|(case, golden)| golden.compare(case, &bench.score(model, case, golden)?))
    }

    /// Checks that a model takes no more than `limit` times as long as an older version that has sessions of its own,
    /// for which nobody waits. Cases that the older one cannot answer do not count.
    pub(super) fn compare_time(
        &self,
        model: &Arc<Model>,
        older: &Arc<Model>,
        bench: &Bench,
        limit: f64,
    ) -> Result<(), ValidationError> {
        let answered = |(case, golden): &(usize, &GoldenCase)| bench.score(older, *case, golden).is_ok();
        let cases: Vec<(usize, &GoldenCase)> = self.numbered().filter(answered).collect();
        if cases.is_empty() {
            return Ok(());
        }
        let (mut found, mut expected) = (Duration::MAX, Duration::MAX);
        for _ in 0..TIMED_RUNS {
            found = found.min(bench.time(model, &cases)?);
            expected = expected.min(bench.time(older, &cases)?);
        }
        let ratio = found.as_secs_f64() / expected.as_secs_f64();
        if ratio <= limit {
            return Ok(());
        }
        Err(ValidationError::TooSlow { version: older.manifest().version, found, ratio, limit })
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &GoldenCase)> {
        self.0.iter().enumerate()
    }
}

impl GoldenCase {
    fn compare(&self, case: usize, scores: &[f32]) -> Result<(), ValidationError> {
        let scale = self.scores.iter().fold(1.0_f32, |scale, score| scale.max(score.abs()));
        let tolerance = GOLDEN_TOLERANCE * scale;
        let compared = scores.iter().zip(&self.scores).enumerate();
        for (config, (&found, &expected)) in compared {
            // An expected score that is no number is met by none.
            let met = (found - expected).abs() <= tolerance;
            if !met {
                return Err(ValidationError::GoldenMismatch { case, config, found, expected, tolerance });
            }
        }
        Ok(())
    }
}

/// An engine beside the one that serves, without a cache, on one thread that works with the sessions of one worker. It
/// lasts: threads that come and go leave their memory in pieces.
pub(super) struct Bench {
    pool: Arc<ComputePool>,
    engine: Engine,
}

impl Bench {
    pub(super) fn new(worker: Worker) -> io::Result<Self> {
        let pool = Arc::new(ComputePool::background(worker)?);
        Ok(Self { engine: Engine::without_cache(Arc::clone(&pool)), pool })
    }

    /// Gives its thread a low priority. A thread in its place inherits it.
    pub(super) fn yield_to_others(&self) {
        self.pool.spawn(Class::Bulk, |_| yield_to_others());
    }

    /// Its thread.
    pub(super) fn pool(&self) -> &Arc<ComputePool> {
        &self.pool
    }

    fn score(
        &self,
        model: &Arc<Model>,
        case: usize,
        golden: &GoldenCase,
    ) -> Result<Vec<f32>, ValidationError> {
        let configurations = golden.configurations.clone();
        let scored = self.engine.score(
            model,
            &golden.graph,
            move || Ok::<_, EngineError>(configurations),
            Terms::default(),
        );
        let evaluation = block_on(scored).map_err(|source| ValidationError::Evaluation { case, source })?;
        Ok(evaluation.scores)
    }

    /// Processor time of some cases, which other work on the machine hardly changes.
    fn time(&self, model: &Arc<Model>, cases: &[(usize, &GoldenCase)]) -> Result<Duration, ValidationError> {
        let before = self.processor_time()?;
        for (case, golden) in cases {
            self.score(model, *case, golden)?;
        }
        Ok(self.processor_time()?.saturating_sub(before))
    }

    /// What the thread has taken until now.
    fn processor_time(&self) -> Result<Duration, ValidationError> {
        let now = block_on(
            self.pool.run(Class::Bulk, |_| rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)),
        )?;
        Ok(Duration::try_from(now.value).unwrap_or_default())
    }
}
