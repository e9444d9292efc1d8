use std::{path::Path, sync::Arc, time::Duration};

use hlorank_graph::{Configurations, Limits, SegmentedGraph, Task, read_golden_cases};

use super::{engine::ValidationEngine, error::ValidationError, limit::LoadLimit};
use crate::model::{Artifact, Model, ModelKind, ScoreUnit, WholeGraphSettings};

/// The golden cases of an artifact, ready to be scored.
pub(in crate::registry) struct GoldenCases(Vec<GoldenCase>);

struct GoldenCase {
    /// Position in the file.
    case: usize,
    graph: Arc<SegmentedGraph>,
    configurations: Configurations,
    scores: Vec<f32>,
    unit: ScoreUnit,
}

/// Maximum deviation of a score without unit, as a fraction of the largest absolute score of its case, or of 1 if that is
/// larger.
const GOLDEN_TOLERANCE: f32 = 1e-5;

/// Maximum deviation of seconds, as a fraction of each score: an exponential, which makes differences of its argument ones
/// of proportion.
const SECONDS_TOLERANCE: f32 = 1e-4;

/// Number of timed runs, of which the fastest counts.
const TIMED_RUNS: usize = 5;

impl GoldenCases {
    pub(in crate::registry) fn read(artifact: &Artifact) -> Result<Self, ValidationError> {
        let cases = read_golden_cases(
            Path::new("golden.npz"),
            artifact.golden().to_vec(),
            &Limits::default(),
        )?;
        if cases.is_empty() {
            return Err(ValidationError::NoGoldenCases);
        }
        if let ModelKind::WholeGraph(settings) = artifact.manifest().kind() {
            check_chunks(settings, &cases)?;
        }
        check_tasks(artifact.manifest().task(), &cases)?;
        let unit = artifact.manifest().unit();
        let ready = cases
            .into_iter()
            .enumerate()
            .map(|(case, golden)| GoldenCase {
                case,
                graph: Arc::new(SegmentedGraph::new(&golden.graph)),
                configurations: golden.configurations,
                scores: golden.scores,
                unit,
            });
        Ok(Self(ready.collect()))
    }

    /// Checks that the sessions of an engine's worker give the expected scores.
    pub(in crate::registry) fn check(
        &self,
        model: &Arc<Model>,
        engine: &ValidationEngine,
        limit: &LoadLimit,
    ) -> Result<(), ValidationError> {
        self.0
            .iter()
            .try_for_each(|golden| golden.compare(&golden.score(model, engine, limit)?))
    }

    /// Returns the cases that an older version answers. Others say nothing about time.
    pub(in crate::registry) fn timed_cases<'a>(
        &'a self,
        older: &Arc<Model>,
        engine: &'a ValidationEngine,
        limit: &'a LoadLimit,
    ) -> TimedCases<'a> {
        let answered = |golden: &&GoldenCase| golden.score(older, engine, limit).is_ok();
        TimedCases {
            cases: self.0.iter().filter(answered).collect(),
            engine,
            limit,
        }
    }
}

/// Checks that a case has several chunks if scores depend on how a batch is cut.
fn check_chunks(
    settings: &WholeGraphSettings,
    cases: &[hlorank_graph::GoldenCase],
) -> Result<(), ValidationError> {
    let chunk_configs = settings.chunk_configs;
    if settings.needs_whole_batch() && cases.iter().all(|case| case.scores.len() <= chunk_configs) {
        return Err(ValidationError::GoldenOneChunk { chunk_configs });
    }
    Ok(())
}

/// Checks that all cases are for models of a task.
fn check_tasks(expected: Task, cases: &[hlorank_graph::GoldenCase]) -> Result<(), ValidationError> {
    for (case, golden) in cases.iter().enumerate() {
        let found = golden.graph.task();
        if found != expected {
            return Err(ValidationError::GoldenTask {
                case,
                found,
                expected,
            });
        }
    }
    Ok(())
}

/// Cases whose time is measured.
pub(in crate::registry) struct TimedCases<'a> {
    cases: Vec<&'a GoldenCase>,
    engine: &'a ValidationEngine,
    limit: &'a LoadLimit,
}

impl TimedCases<'_> {
    /// Checks that a model takes at most `max_slowdown` times as long as an older version with sessions of its own.
    pub(in crate::registry) fn compare(
        &self,
        model: &Arc<Model>,
        older: &Arc<Model>,
        max_slowdown: f64,
    ) -> Result<(), ValidationError> {
        if self.cases.is_empty() {
            return Ok(());
        }
        let mut found = Duration::MAX;
        let mut expected = Duration::MAX;
        // The models take turns, so that whatever else the machine does slows both. The fastest run
        // is the least disturbed one.
        for _ in 0..TIMED_RUNS {
            found = found.min(self.time(model)?);
            expected = expected.min(self.time(older)?);
        }
        let ratio = found.as_secs_f64() / expected.as_secs_f64();
        if ratio <= max_slowdown {
            return Ok(());
        }
        Err(ValidationError::TooSlow {
            version: older.manifest().version,
            found,
            ratio,
            limit: max_slowdown,
        })
    }

    /// Returns the processor time that a model takes.
    fn time(&self, model: &Arc<Model>) -> Result<Duration, ValidationError> {
        // The clock counts processor time: a thread of low priority often waits for others.
        let before = self.engine.clock(self.limit)?;
        for golden in &self.cases {
            golden.score(model, self.engine, self.limit)?;
        }
        Ok(self.engine.clock(self.limit)?.saturating_sub(before))
    }
}

impl GoldenCase {
    fn score(
        &self,
        model: &Arc<Model>,
        engine: &ValidationEngine,
        limit: &LoadLimit,
    ) -> Result<Vec<f32>, ValidationError> {
        let scores = engine.score(limit, model, &self.graph, self.configurations.clone())?;
        scores.map_err(|source| ValidationError::Evaluation {
            case: self.case,
            source,
        })
    }

    fn compare(&self, scores: &[f32]) -> Result<(), ValidationError> {
        // Rounding is relative to the terms of a score, which may cancel each other out. The
        // largest score of the case stands for their size.
        let scale = self
            .scores
            .iter()
            .fold(1.0_f32, |scale, score| scale.max(score.abs()));
        let compared = scores.iter().zip(&self.scores).enumerate();
        for (config, (&found, &expected)) in compared {
            let tolerance = self.tolerance(scale, expected);
            // If the expected score is not a number, no score matches it.
            let matches = (found - expected).abs() <= tolerance;
            if !matches {
                return Err(ValidationError::GoldenMismatch {
                    case: self.case,
                    config,
                    found,
                    expected,
                    tolerance,
                });
            }
        }
        Ok(())
    }

    fn tolerance(&self, scale: f32, expected: f32) -> f32 {
        match self.unit {
            ScoreUnit::None => GOLDEN_TOLERANCE * scale,
            ScoreUnit::Seconds => SECONDS_TOLERANCE * expected.abs(),
        }
    }
}
