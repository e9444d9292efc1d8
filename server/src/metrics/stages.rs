use std::time::Duration;

use metrics::Histogram;

use super::{Family, Recorder};
use crate::outcome::Timings;

const SECONDS: Family<Histogram, 1> = Family::new(
    "hlorank_stage_duration_seconds",
    ["stage"],
    "Stages as answers tell them: queue, parse, encode, head and total of every scored batch, rank of every ranking, \
     featurize of every graph that was read",
);

/// Where time goes.
pub struct StageSeries {
    queue: Histogram,
    featurize: Histogram,
    parse: Histogram,
    encode: Histogram,
    head: Histogram,
    rank: Histogram,
    total: Histogram,
}

impl StageSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let stage = |name| SECONDS.series(recorder, [name]);
        Self {
            queue: stage("queue"),
            featurize: stage("featurize"),
            parse: stage("parse"),
            encode: stage("encode"),
            head: stage("head"),
            rank: stage("rank"),
            total: stage("total"),
        }
    }

    /// Records reading a graph.
    pub fn featurized(&self, took: Duration) {
        self.featurize.record(took);
    }

    /// Records a batch that was scored.
    pub fn scored(&self, timings: &Timings) {
        self.queue.record(timings.queue);
        self.parse.record(timings.parse);
        self.encode.record(timings.encode);
        self.head.record(timings.head);
        self.total.record(timings.total);
    }

    /// Records a ranking.
    pub fn ranked(&self, timings: &Timings) {
        self.rank.record(timings.rank);
    }
}
