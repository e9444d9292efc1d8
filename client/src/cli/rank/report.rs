use std::time::Duration;

use hlorank_client::{Ranked, Ranking, Timings, v1};
use serde::Serialize;

use crate::cli::{
    confidence::Confidence,
    configuration::ConfigurationForm,
    draw::Drawn,
    explain::Kernels,
    job::Job,
    lesson::Lesson,
    measured::Prediction,
    run_times::RunTimes,
    score::{score_text, unit_name},
};

/// The rankings of a file.
#[derive(Debug, Serialize)]
pub(super) struct RankReport {
    pub(super) graphs: Vec<GraphRanking>,
}

/// The ranking of one graph.
#[derive(Debug, Serialize)]
pub(super) struct GraphRanking {
    pub(super) module: usize,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) nodes: usize,
    pub(super) graph_hash: String,
    pub(super) model: String,
    /// Unit of the scores, if they have one.
    pub(super) unit: Option<&'static str>,
    /// What was drawn, if the configurations were.
    pub(super) drawn: Option<Drawn>,
    /// Number of configurations that were sent.
    pub(super) configurations: usize,
    /// Number of configurations that were scored: the first ones of those sent.
    pub(super) scored: usize,
    pub(super) ranking: Vec<RankedConfiguration>,
    /// The kernels of the best configurations, if `--explain` asks for them.
    pub(super) kernels: Vec<RankedKernels>,
    pub(super) measured: Option<MeasuredSummary>,
    /// What the server learned from `--measured`.
    pub(super) learned: Option<Lesson>,
    /// How far the ranking can be trusted, if the server knows it.
    pub(super) confidence: Option<Confidence>,
    pub(super) reuse: Reuse,
    pub(super) round_trip_ms: f64,
    pub(super) server_ms: Stages,
    pub(super) warnings: Vec<Warning>,
}

/// One of the best configurations.
#[derive(Debug, Serialize)]
pub(super) struct RankedConfiguration {
    /// Rank, from 1.
    pub(super) rank: usize,
    /// Number of the configuration in the file.
    pub(super) number: usize,
    pub(super) score: f32,
    pub(super) predicted: Option<Prediction>,
    pub(super) run_time_ns: Option<i64>,
    pub(super) over_default: Option<f64>,
    pub(super) configuration: ConfigurationForm,
    /// The score with its unit.
    #[serde(skip)]
    pub(super) score_text: String,
    #[serde(skip)]
    pub(super) short: String,
}

/// The kernels of one of the best configurations.
#[derive(Debug, Serialize)]
pub(super) struct RankedKernels {
    /// Rank of the configuration, from 1.
    pub(super) rank: usize,
    pub(super) kernels: Kernels,
}

/// The run times that measuring the best-ranked configurations would have found, in nanoseconds.
#[derive(Debug, Serialize)]
pub(super) struct MeasuredSummary {
    pub(super) configurations: usize,
    pub(super) best_of_ranking_ns: Option<i64>,
    pub(super) default_ns: Option<i64>,
    pub(super) best_ns: i64,
    pub(super) best_number: usize,
    /// Number of runs in the file that failed or do not fit the graph.
    pub(super) skipped_runs: usize,
}

/// How much work was shared.
#[derive(Debug, Serialize)]
pub(super) struct Reuse {
    pub(super) configurations: u64,
    pub(super) distinct_configurations: u64,
    pub(super) segment_rows: u64,
    pub(super) distinct_segment_rows: u64,
    pub(super) rows_evaluated: u64,
    pub(super) rows_cached: u64,
}

/// Time of each stage on the server, in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Stages {
    pub(super) queue: f64,
    pub(super) featurize: f64,
    pub(super) parse: f64,
    pub(super) encode: f64,
    pub(super) head: f64,
    pub(super) rank: f64,
    pub(super) total: f64,
}

/// An unusual property of the request that the server accepted.
#[derive(Debug, Serialize)]
pub(super) struct Warning {
    pub(super) reason: String,
    pub(super) message: String,
}

impl GraphRanking {
    pub(super) fn of(job: &Job<'_>, ranking: Ranking, round_trip: Duration) -> Self {
        let graph = &job.measured.graph;
        let run_times = job.run_times.as_ref();
        Self {
            module: job.module,
            name: job.measured.name.clone(),
            kind: graph.task().to_string(),
            nodes: graph.len(),
            graph_hash: ranking.graph_hash.to_string(),
            model: ranking.model.to_string(),
            unit: unit_name(ranking.unit),
            drawn: job.drawn,
            configurations: job.configurations.len(),
            scored: ranking.scored,
            ranking: RankedConfiguration::all(job, &ranking),
            kernels: RankedKernels::all(job, &ranking),
            measured: run_times.and_then(|times| MeasuredSummary::of(times, &ranking.best)),
            learned: ranking.adaptation.as_ref().map(Lesson::from),
            confidence: ranking.confidence.map(Confidence::from),
            reuse: ranking.reuse.into(),
            round_trip_ms: milliseconds(round_trip),
            server_ms: ranking.timings.into(),
            warnings: ranking.warnings.into_iter().map(Warning::from).collect(),
        }
    }
}

impl RankedConfiguration {
    /// Returns the best configurations in the order of their ranks.
    fn all(job: &Job<'_>, ranking: &Ranking) -> Vec<Self> {
        let places = 0..ranking.best.len();
        places.map(|place| Self::of(job, ranking, place)).collect()
    }

    fn of(job: &Job<'_>, ranking: &Ranking, place: usize) -> Self {
        let Ranked { config, score } = ranking.best[place];
        let slots = job.measured.graph.configurable();
        let run_times = job.run_times.as_ref();
        Self {
            rank: place + 1,
            number: job.number(config),
            score,
            predicted: Prediction::of(ranking, place),
            run_time_ns: job.run_time(config),
            over_default: run_times.and_then(|times| times.over_default(config)),
            configuration: ConfigurationForm::of(job.configurations, slots, config),
            score_text: score_text(ranking.unit, score),
            short: job.configurations.batch().describe(config, slots),
        }
    }
}

impl RankedKernels {
    /// Returns the kernels of the configurations that the server explained: the first ones of the ranking.
    fn all(job: &Job<'_>, ranking: &Ranking) -> Vec<Self> {
        let explained = ranking.kernels.iter().zip(1..);
        let of = |(kernels, rank): (&Vec<v1::KernelTime>, usize)| Self {
            rank,
            kernels: Kernels::of(job, kernels),
        };
        explained.map(of).collect()
    }
}

impl MeasuredSummary {
    fn of(times: &RunTimes<'_>, best: &[Ranked]) -> Option<Self> {
        // A tuner that measures only the best-ranked configurations finds the fastest of these. Its
        // distance to the fastest of all is what the ranking would have cost.
        let (fastest, best_ns) = times.best()?;
        let best_of_ranking = times.fastest(best.iter().map(|ranked| ranked.config));
        Some(Self {
            configurations: times.len(),
            best_of_ranking_ns: best_of_ranking.map(|(_, time)| time),
            default_ns: times.default(),
            best_ns,
            best_number: times.number(fastest),
            skipped_runs: times.skipped(),
        })
    }
}

impl From<v1::ReuseCounts> for Reuse {
    fn from(reuse: v1::ReuseCounts) -> Self {
        Self {
            configurations: reuse.configs,
            distinct_configurations: reuse.distinct_configs,
            segment_rows: reuse.segment_rows,
            distinct_segment_rows: reuse.distinct_segment_rows,
            rows_evaluated: reuse.rows_evaluated,
            rows_cached: reuse.rows_cached,
        }
    }
}

impl From<Timings> for Stages {
    fn from(timings: Timings) -> Self {
        Self {
            queue: milliseconds(timings.queue),
            featurize: milliseconds(timings.featurize),
            parse: milliseconds(timings.parse),
            encode: milliseconds(timings.encode),
            head: milliseconds(timings.head),
            rank: milliseconds(timings.rank),
            total: milliseconds(timings.total),
        }
    }
}

impl From<v1::Warning> for Warning {
    fn from(warning: v1::Warning) -> Self {
        Self {
            reason: warning.reason,
            message: warning.message,
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
