//! What an evaluation yields: scores, how much work they shared, and how long each stage took.
//!
//! These are the types that the engine makes, that queries add up, and that metrics and telemetry record.

use std::{
    ops::AddAssign,
    time::{Duration, Instant},
};

use hlorank_graph::UnscoredConfig;

/// The scores of a batch.
#[derive(Debug)]
pub struct Evaluation {
    /// `[configurations]` scores; lower is predicted faster.
    pub scores: Vec<f32>,
    /// How much work was shared.
    pub reuse: Reuse,
    /// Configurations that got no score, whose scores are infinite.
    pub unscored: Option<UnscoredConfigs>,
    /// When each stage ended.
    pub stages: Stages,
}

/// Configurations that get no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnscoredConfigs {
    /// Their number.
    pub count: usize,
    /// The first of them.
    pub first: UnscoredConfig,
}

/// A kernel that a configuration of a program runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelTime {
    /// The node that it writes.
    pub node: u32,
    /// Number of nodes that it computes.
    pub computed_nodes: usize,
    /// Predicted seconds.
    pub seconds: f32,
}

/// How many things were asked for, and how many of them were evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    /// Configurations.
    pub configs: usize,
    /// Configurations that differ from each other.
    pub distinct_configs: usize,
    /// Pairs of segment and configuration. A whole graph counts as one segment.
    pub segment_rows: usize,
    /// Rows that differ from each other.
    pub distinct_segment_rows: usize,
    /// Distinct rows that were evaluated for this call. Other calls evaluated the rest.
    pub rows_evaluated: usize,
}

/// When the stages of an evaluation ended.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    /// Time until a worker was free to read the configurations.
    pub waited: Duration,
    /// The distinct rows were found and looked up.
    pub planned: Instant,
    /// The encoder was done.
    pub encoded: Instant,
    /// Every configuration had its score.
    pub scored: Instant,
}

/// Wall time of each stage of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Waiting for the first free worker. Later waits count towards their stages.
    pub queue: Duration,
    /// Reading, featurizing, pruning and cutting the graph; zero if it was cached.
    pub featurize: Duration,
    /// Reading and checking the configurations, and finding the distinct ones.
    pub parse: Duration,
    /// Running the encoder on distinct rows.
    pub encode: Duration,
    /// Summing embeddings, and running the head.
    pub head: Duration,
    /// Sorting the scores.
    pub rank: Duration,
    /// From the decoded request to the answer.
    pub total: Duration,
}

impl Evaluation {
    /// Appends the evaluation of the configurations that follow in the same batch.
    pub fn append(&mut self, next: Self) {
        self.unscored = UnscoredConfigs::joined(self.unscored, next.unscored, self.scores.len());
        self.scores.extend(next.scores);
        self.reuse += next.reuse;
        self.stages = Stages {
            encoded: next.stages.encoded,
            scored: next.stages.scored,
            ..self.stages
        };
    }
}

impl UnscoredConfigs {
    /// Joins those of a batch with those of the next one, whose first configuration has the number `first`.
    #[must_use]
    pub fn joined(before: Option<Self>, next: Option<Self>, first: usize) -> Option<Self> {
        let next = next.map(
            |Self {
                 count,
                 first: UnscoredConfig { config, reason },
             }| Self {
                count,
                first: UnscoredConfig {
                    config: first + config,
                    reason,
                },
            },
        );
        match (before, next) {
            (Some(before), Some(next)) => Some(Self {
                count: before.count + next.count,
                ..before
            }),
            (before, next) => before.or(next),
        }
    }
}

impl Reuse {
    /// Distinct rows that other calls evaluated, before or at the same time.
    #[must_use]
    pub fn rows_cached(&self) -> usize {
        self.distinct_segment_rows - self.rows_evaluated
    }
}

impl AddAssign for Reuse {
    fn add_assign(&mut self, other: Self) {
        self.configs += other.configs;
        self.distinct_configs += other.distinct_configs;
        self.segment_rows += other.segment_rows;
        self.distinct_segment_rows += other.distinct_segment_rows;
        self.rows_evaluated += other.rows_evaluated;
    }
}

impl Stages {
    /// The time of each stage of an evaluation that was asked for at `asked` and that is answered now.
    #[must_use]
    pub fn timings(&self, asked: Instant) -> Timings {
        let now = Instant::now();
        Timings {
            queue: self.waited,
            parse: (self.planned - asked).saturating_sub(self.waited),
            encode: self.encoded - self.planned,
            head: self.scored - self.encoded,
            rank: now - self.scored,
            total: now - asked,
            ..Timings::default()
        }
    }
}
