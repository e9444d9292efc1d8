//! Golden cases: what a version must pass before it serves. It answers them with the scores that its exporter saw, and is not much
//! slower than the version before.

use std::{path::Path, sync::Arc, time::Duration};

use hlorank_graph::{Configurations, FileError, Limits, SegmentedGraph, read_golden_cases};

use super::validation_engine::{LoadLimit, ValidationEngine};
use crate::{
    engine::EngineError,
    model::{Artifact, Model, ModelKind, Rejection, ScoreUnit},
};

/// The golden cases of an artifact, ready to be scored.
pub(super) struct GoldenCases(Vec<GoldenCase>);

struct GoldenCase {
    /// Position in the file.
    case: usize,
    graph: Arc<SegmentedGraph>,
    configurations: Configurations,
    scores: Vec<f32>,
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
    pub(super) fn read(artifact: &Artifact) -> Result<Self, Rejection> {
        let bytes = artifact.golden.to_vec();
        let cases = read_golden_cases(Path::new("golden.npz"), bytes, &Limits::default());
        let cases = cases.map_err(|error| {
            let reason = match error {
                FileError::TooLarge { .. } => "FILE_TOO_LARGE",
                _ => "GOLDEN_UNREADABLE",
            };
            Rejection::new(reason, error.to_string())
        })?;
        if cases.is_empty() {
            return Err(Rejection::new("GOLDEN_EMPTY", "golden.npz has no cases"));
        }
        let manifest = &artifact.manifest;
        if let ModelKind::WholeGraph(settings) = &manifest.kind
            && settings.needs_whole_batch()
            && cases
                .iter()
                .all(|case| case.scores.len() <= settings.chunk_configs)
        {
            let message = format!(
                "every case of golden.npz is one chunk of at most {} configurations, so none shows how the model's batches \
                 are cut; add a case with more",
                settings.chunk_configs
            );
            return Err(Rejection::new("GOLDEN_ONE_CHUNK", message));
        }
        let mut ready = Vec::with_capacity(cases.len());
        for (case, golden) in cases.into_iter().enumerate() {
            let found = golden.graph.task();
            if found != manifest.task {
                let message = format!(
                    "golden case {case} has {found} configurations, but the model ranks {} configurations",
                    manifest.task
                );
                return Err(Rejection::new("TASK_MISMATCH", message));
            }
            ready.push(GoldenCase {
                case,
                graph: Arc::new(SegmentedGraph::new(&golden.graph)),
                configurations: golden.configurations,
                scores: golden.scores,
            });
        }
        Ok(Self(ready))
    }

    /// Checks that the sessions of an engine's worker give the expected scores.
    pub(super) fn check(
        &self,
        model: &Arc<Model>,
        engine: &ValidationEngine,
        limit: &LoadLimit,
    ) -> Result<(), Rejection> {
        let unit = model.manifest().unit;
        self.0
            .iter()
            .try_for_each(|golden| golden.compare(&golden.score(model, engine, limit)?, unit))
    }

    /// Checks that a model takes at most `max_slowdown` times as long as an older version with sessions of its own.
    pub(super) fn check_time(
        &self,
        model: &Arc<Model>,
        older: &Arc<Model>,
        max_slowdown: f64,
        engine: &ValidationEngine,
        limit: &LoadLimit,
    ) -> Result<(), Rejection> {
        // Cases that the older version does not answer say nothing about time.
        let answered = |golden: &&GoldenCase| golden.score(older, engine, limit).is_ok();
        let cases: Vec<&GoldenCase> = self.0.iter().filter(answered).collect();
        if cases.is_empty() {
            return Ok(());
        }
        let time = |model| {
            // The clock counts processor time: a thread of low priority often waits for others.
            let before = engine.clock(limit)?;
            for golden in &cases {
                golden.score(model, engine, limit)?;
            }
            Ok::<_, Rejection>(engine.clock(limit)?.saturating_sub(before))
        };
        let mut found = Duration::MAX;
        let mut expected = Duration::MAX;
        // The models take turns, so that whatever else the machine does slows both. The fastest run
        // is the least disturbed one.
        for _ in 0..TIMED_RUNS {
            found = found.min(time(model)?);
            expected = expected.min(time(older)?);
        }
        let ratio = found.as_secs_f64() / expected.as_secs_f64();
        if ratio <= max_slowdown {
            return Ok(());
        }
        let message = format!(
            "the golden cases take {found:?}, {ratio:.1} times as long as with version {}; the maximum is {max_slowdown} \
             times (--max-slowdown)",
            older.manifest().version
        );
        Err(Rejection::new("TOO_SLOW", message))
    }
}

impl GoldenCase {
    fn score(
        &self,
        model: &Arc<Model>,
        engine: &ValidationEngine,
        limit: &LoadLimit,
    ) -> Result<Vec<f32>, Rejection> {
        let scores = engine.score(limit, model, &self.graph, self.configurations.clone())?;
        scores.map_err(|error| {
            let reason = match &error {
                EngineError::Model(failed) if failed.is_expired() => "LOAD_TIMEOUT",
                EngineError::InvalidOutput { .. } => "SCORE_NOT_FINITE",
                _ => "EVALUATION_FAILED",
            };
            Rejection::new(reason, format!("golden case {}: {error}", self.case))
        })
    }

    fn compare(&self, scores: &[f32], unit: ScoreUnit) -> Result<(), Rejection> {
        // Rounding is relative to the terms of a score, which may cancel each other out. The
        // largest score of the case stands for their size.
        let largest = self.scores.iter().map(|score| score.abs());
        let scale = largest.fold(1.0, f32::max);
        let compared = scores.iter().zip(&self.scores).enumerate();
        for (config, (&found, &expected)) in compared {
            let tolerance = match unit {
                ScoreUnit::None => GOLDEN_TOLERANCE * scale,
                ScoreUnit::Seconds => SECONDS_TOLERANCE * expected.abs(),
            };
            // If the expected score is not a number, no score matches it.
            let matches = (found - expected).abs() <= tolerance;
            if !matches {
                let message = format!(
                    "golden case {}, configuration {config}: the score is {found}, but the exporter's was {expected}; the \
                     tolerance is {tolerance:e}",
                    self.case
                );
                return Err(Rejection::new("GOLDEN_MISMATCH", message));
            }
        }
        Ok(())
    }
}
