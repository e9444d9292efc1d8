use std::{ops::AddAssign, time::Duration};

use hlorank_graph::Digest;
use hlorank_proto::v1::{
    Adaptation, Confidence, KernelTime, RankConfigsResponse, ReuseCounts, ScoreUnit, StageTimings,
    Warning,
};

use crate::{
    InvalidAnswer, ModelReference,
    answer::{self, ExpectedAnswer},
};

/// The answer to a [`RankRequest`](crate::RankRequest).
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The best configurations by ascending score, ties by number: as many as were requested.
    pub best: Vec<RankedConfig>,
    /// Unit of the scores.
    pub unit: ScoreUnit,
    /// Predicted run time of each of the best, in seconds; empty if scores have no unit.
    pub predicted_seconds: Vec<f32>,
    /// Standard deviation of the natural logarithm of each predicted time; empty unless the server learned from
    /// measurements.
    pub log_sd: Vec<f32>,
    /// The kernels of the first of the best, by the node that they write; as many as were requested.
    pub kernels: Vec<Vec<KernelTime>>,
    /// What the predictions rest on, if measurements were sent.
    pub adaptation: Option<Adaptation>,
    /// How far the ranking can be trusted, if that was asked.
    pub confidence: Option<Confidence>,
    /// Score of every configuration in the order sent; empty unless requested.
    pub scores: Vec<f32>,
    /// Number of configurations that were scored and ranked: the first ones in the order sent, and all of them unless
    /// the request allows partial answers.
    pub scored: usize,
    /// The model version that answered. It has no name, and is printed as `no model`, if measurements alone answered.
    pub model: ModelReference,
    /// The graph hash.
    pub graph_hash: Digest,
    /// Time of each stage on the server.
    pub timings: Timings,
    /// How much work was shared.
    pub reuse: ReuseCounts,
    /// Unusual properties of the request that the server accepted.
    pub warnings: Vec<Warning>,
}

/// A configuration and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedConfig {
    /// Number of the configuration in the order sent.
    pub config: usize,
    /// Score in the unit of the ranking; lower is predicted faster. Without unit, comparable only within one graph and model
    /// version. Infinite for a configuration with a kernel beyond the model's limits.
    pub score: f32,
}

/// Wall-clock time of each stage on the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Waiting for a free worker.
    pub queue: Duration,
    /// Reading, featurizing, pruning and cutting the graph; zero if it was cached.
    pub featurize: Duration,
    /// Reading the configurations and finding the distinct ones.
    pub parse: Duration,
    /// Evaluating the encoder.
    pub encode: Duration,
    /// Summing embeddings and evaluating the head.
    pub head: Duration,
    /// Sorting the scores.
    pub rank: Duration,
    /// From the decoded request to the answer.
    pub total: Duration,
}

impl AddAssign for Timings {
    fn add_assign(&mut self, other: Self) {
        self.queue += other.queue;
        self.featurize += other.featurize;
        self.parse += other.parse;
        self.encode += other.encode;
        self.head += other.head;
        self.rank += other.rank;
        self.total += other.total;
    }
}

impl Ranking {
    /// Checks an answer and converts it.
    pub(crate) fn from_answer(
        answer: RankConfigsResponse,
        asked: ExpectedAnswer,
    ) -> Result<Self, InvalidAnswer> {
        asked.check(&answer)?;
        let unit = answer.unit();
        let ranked = answer.ranking.iter().zip(answer.ranking_scores);
        let best = ranked.map(|(&config, score)| RankedConfig {
            config: config as usize,
            score,
        });
        let kernels = answer.kernels.into_iter().map(|config| config.kernels);
        Ok(Self {
            best: best.collect(),
            unit,
            kernels: kernels.collect(),
            predicted_seconds: answer.predicted_seconds,
            log_sd: answer.log_sd,
            adaptation: answer.adaptation,
            confidence: answer.confidence,
            scores: answer.scores,
            scored: answer.scored_configs as usize,
            model: answer::model(answer.model, asked.needs_model)?,
            graph_hash: answer::graph_hash(&answer.graph_hash)?,
            timings: answer.timings.map(Timings::from).unwrap_or_default(),
            reuse: answer.reuse.unwrap_or_default(),
            warnings: answer.warnings,
        })
    }
}

impl From<StageTimings> for Timings {
    fn from(timings: StageTimings) -> Self {
        // Negative and missing durations become zero.
        let time = |duration: Option<_>| {
            let duration = duration.and_then(|time| Duration::try_from(time).ok());
            duration.unwrap_or_default()
        };
        Self {
            queue: time(timings.queue),
            featurize: time(timings.featurize),
            parse: time(timings.parse),
            encode: time(timings.encode),
            head: time(timings.head),
            rank: time(timings.rank),
            total: time(timings.total),
        }
    }
}
