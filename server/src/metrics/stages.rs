use std::time::Duration;

use metrics::Histogram;

use super::{family::Family, recorder::Recorder};
use crate::outcome::Timings;

const SECONDS: Family<Histogram, 1> = Family::new(
    "hlorank_stage_duration_seconds",
    ["stage"],
    "Time per stage: queue, parse, encode, head and total of every scored batch, rank of every ranking, and featurize \
     of every graph that was read",
);

/// Time that calls spend in each stage.
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

    /// Records the time to read a graph.
    pub fn featurized(&self, duration: Duration) {
        self.featurize.record(duration);
    }

    /// Records the stages of a scored batch.
    pub fn scored(&self, timings: &Timings) {
        self.queue.record(timings.queue);
        self.parse.record(timings.parse);
        self.encode.record(timings.encode);
        self.head.record(timings.head);
        self.total.record(timings.total);
    }

    /// Records the time to rank.
    pub fn ranked(&self, timings: &Timings) {
        self.rank.record(timings.rank);
    }
}
