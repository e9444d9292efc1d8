use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram};
use parking_lot::Mutex;

use super::recorder::{Recorder, series, set};
use crate::ranking_quality::{GraphQuality, QualitySummary};

series! {
    /// Metrics of the store of measurements.
    pub struct StoreSeries {
        /// Measurements in the store; 0 without --measurements
        pub measurements: Gauge = "hlorank_measurements",
        /// Decisions in the store, superseded ones too; 0 without --measurements
        pub decisions: Gauge = "hlorank_decisions",
        /// Bytes of the measurements and decisions in the store, without the overhead of the file
        pub bytes: Gauge = "hlorank_measurements_bytes",
        /// Maximum number of bytes of the measurements in the store; 0 without --measurements
        pub max_bytes: Gauge = "hlorank_measurements_max_bytes",
        /// Measurements that were deleted by calls, or because they expired
        pub deleted: Counter = "hlorank_measurements_deleted_total",
        /// Reads and writes of the store that failed. A call to rank goes on without stored measurements
        pub failures: Counter = "hlorank_measurements_failures_total",
    }
    Counter "hlorank_measurements_reported_total" by result: "Measurements of successful reports: accepted, or known because they were reported before" {
        /// New measurements.
        pub accepted = "accepted",
        /// Measurements that were reported before.
        pub known = "known",
    }
    Counter "hlorank_decisions_answered_total" by outcome: "Answers of Decide: the key is decided, or the call claimed it, or another worker tunes it, or nobody does" {
        /// Calls that got a decision.
        pub decided = "decided",
        /// Calls that got the claim.
        pub claimed = "claimed",
        /// Calls that found the claim of another worker.
        pub held = "held",
        /// Calls that asked for no claim, and found neither.
        pub undecided = "undecided",
    }
}

/// Metrics of how well model versions rank what clients measured.
pub struct QualitySeries {
    replays: ReplaySeries,
    recorder: Arc<Recorder>,
    versions: Mutex<PublishedSeries>,
}

series! {
    /// Metrics of replays.
    struct ReplaySeries {
        /// Time of replays, each of one graph through one version, with the time that they wait for other work
        seconds: Histogram = "hlorank_quality_replay_duration_seconds",
    }
    Counter "hlorank_quality_replays_total" by result: "Replays of the measurements of one graph through one version" {
        replayed = "replayed",
        failed = "failed",
    }
}

/// The name of a model and the role of its version.
type Version = (String, &'static str);

#[derive(Default)]
struct PublishedSeries {
    series: BTreeMap<(Version, String), RankingSeries>,
    targets: BTreeSet<String>,
}

series! {
    /// Metrics of the graphs on one target, as a version ranks them.
    struct RankingSeries {
        /// Graphs with at least three measured configurations that were replayed through the version in this role
        graphs: Gauge = "hlorank_quality_graphs",
        /// Distinct measured configurations of these graphs, at most 1,000 of each
        configs: Gauge = "hlorank_quality_configs",
        /// Kendall's tau of scores and measured run times, -1 to 1, mean over the graphs; 0 if there are none
        tau: Gauge = "hlorank_quality_kendall_tau",
        /// Share of pairs of measured configurations that scores order as run times do, mean over the graphs
        ordered_pairs: Gauge = "hlorank_quality_ordered_pairs_ratio",
        /// How much slower the measured configuration with the best score is than the fastest one, 0.1 for 10 %, mean over the graphs
        regret: Gauge = "hlorank_quality_top_pick_regret_ratio",
        /// Predicted over measured run time, geometric mean; 0 unless the unit of the model's scores is seconds
        time: Gauge = "hlorank_quality_predicted_time_ratio",
        /// The larger over the smaller of predicted and measured run time, geometric mean; 0 unless the unit of the model's scores is seconds
        time_error: Gauge = "hlorank_quality_time_error_ratio",
    }
}

/// Maximum number of targets with series of their own.
const MAX_TARGETS: usize = 16;

/// Target of the graphs on all further targets.
const OTHER: &str = "other";

/// Value of labels before anything was replayed.
const NONE: &str = "none";

impl QualitySeries {
    pub(super) fn new(recorder: &Arc<Recorder>) -> Self {
        // A metric without a series is not exported, so one with placeholders shows that the metric
        // exists.
        RankingSeries::of_version(recorder, [NONE; 3]).set(&QualitySummary::default());
        Self {
            replays: ReplaySeries::new(recorder, &[]),
            recorder: Arc::clone(recorder),
            versions: Mutex::default(),
        }
    }

    /// Counts a replay.
    pub fn replayed(&self, succeeded: bool, duration: Duration) {
        let counter = if succeeded {
            &self.replays.replayed
        } else {
            &self.replays.failed
        };
        counter.increment(1);
        self.replays.seconds.record(duration);
    }

    /// Publishes how well versions rank graphs, each on a target. What is not among them becomes zero.
    pub fn publish(&self, graphs: impl Iterator<Item = (Version, Vec<(String, GraphQuality)>)>) {
        let mut versions = self.versions.lock();
        let mut labelled = Vec::new();
        for (version, graphs) in graphs {
            for (target, graph) in graphs {
                labelled.push(((version.clone(), versions.label(target)), graph));
            }
        }
        let current = QualitySummary::by_key(labelled);
        // A series cannot be removed, and would keep its last value.
        for (of, series) in &versions.series {
            if !current.contains_key(of) {
                series.set(&QualitySummary::default());
            }
        }
        for (of, summary) in current {
            let ((model, role), target) = &of;
            let new = RankingSeries::of_version(&self.recorder, [model, role, target]);
            versions.series.entry(of).or_insert(new).set(&summary);
        }
    }
}

impl PublishedSeries {
    /// Returns the label of a target. The first ones have their own.
    fn label(&mut self, target: String) -> String {
        if self.targets.contains(&target) {
            return target;
        }
        // The first targets keep their labels, so a series is about one target for as long as the
        // process runs.
        if self.targets.len() >= MAX_TARGETS {
            return OTHER.to_owned();
        }
        self.targets.insert(target.clone());
        target
    }
}

impl RankingSeries {
    /// A version is named by its role, so that a new one continues the series of the one before.
    fn of_version(recorder: &Recorder, [model, role, target]: [&str; 3]) -> Self {
        let labels = [("model", model), ("role", role), ("target", target)];
        Self::new(recorder, &labels)
    }

    fn set(&self, summary: &QualitySummary) {
        set(&self.graphs, summary.graphs as u64);
        set(&self.configs, summary.measured as u64);
        self.tau.set(summary.tau);
        self.ordered_pairs.set(summary.ordered_pairs);
        self.regret.set(summary.regret);
        self.time.set(summary.time_ratio.unwrap_or_default());
        self.time_error.set(summary.time_error.unwrap_or_default());
    }
}
