use std::time::Duration;

use hlorank_proto::v1::StageTimings;
use metrics::Histogram;

use super::{Family, Recorder};

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
    pub fn scored(&self, timings: &StageTimings) {
        record(&self.queue, timings.queue);
        record(&self.parse, timings.parse);
        record(&self.encode, timings.encode);
        record(&self.head, timings.head);
        record(&self.total, timings.total);
    }

    /// Records a ranking.
    pub fn ranked(&self, timings: &StageTimings) {
        record(&self.rank, timings.rank);
    }
}

fn record(stage: &Histogram, took: Option<prost_types::Duration>) {
    if let Some(took) = took.and_then(|took| Duration::try_from(took).ok()) {
        stage.record(took);
    }
}
