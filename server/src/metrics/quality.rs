use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram};
use parking_lot::Mutex;

use super::{
    family::{Family, set},
    recorder::Recorder,
};
use crate::ranking_quality::{GraphQuality, QualitySummary};

const GRAPHS: Family<Gauge, 3> = Family::new(
    "hlorank_quality_graphs",
    LABELS,
    "Graphs with at least three measured configurations that were replayed through the version in this role",
);

const CONFIGS: Family<Gauge, 3> = Family::new(
    "hlorank_quality_configs",
    LABELS,
    "Distinct measured configurations of these graphs, at most 1,000 of each",
);

const KENDALL_TAU: Family<Gauge, 3> = Family::new(
    "hlorank_quality_kendall_tau",
    LABELS,
    "Kendall's tau of scores and measured run times, -1 to 1, mean over the graphs; 0 if there are none",
);

const ORDERED_PAIRS: Family<Gauge, 3> = Family::new(
    "hlorank_quality_ordered_pairs_ratio",
    LABELS,
    "Share of pairs of measured configurations that scores order as run times do, mean over the graphs",
);

const REGRET: Family<Gauge, 3> = Family::new(
    "hlorank_quality_top_pick_regret_ratio",
    LABELS,
    "How much slower the measured configuration with the best score is than the fastest one, 0.1 for 10 %, mean over the graphs",
);

const TIME: Family<Gauge, 3> = Family::new(
    "hlorank_quality_predicted_time_ratio",
    LABELS,
    "Predicted over measured run time, geometric mean; 0 unless the unit of the model's scores is seconds",
);

const TIME_ERROR: Family<Gauge, 3> = Family::new(
    "hlorank_quality_time_error_ratio",
    LABELS,
    "The larger over the smaller of predicted and measured run time, geometric mean; 0 unless the unit of the model's scores is seconds",
);

const REPLAYS: Family<Counter, 1> = Family::new(
    "hlorank_quality_replays_total",
    ["result"],
    "Replays of the measurements of one graph through one version",
);

const REPLAY_SECONDS: Family<Histogram, 0> = Family::new(
    "hlorank_quality_replay_duration_seconds",
    [],
    "Time of replays, each of one graph through one version, with the time that they wait for other work",
);

/// A version is named by its role, so that a new one continues the series of the one before.
const LABELS: [&str; 3] = ["model", "role", "target"];

/// Maximum number of targets with series of their own.
const MAX_TARGETS: usize = 16;

/// Target of the graphs on all further targets.
const OTHER: &str = "other";

/// Value of labels before anything was replayed.
const NONE: &str = "none";

/// Metrics of how well model versions rank what clients measured.
pub struct QualitySeries {
    replayed: Counter,
    failed: Counter,
    replay_seconds: Histogram,
    recorder: Arc<Recorder>,
    versions: Mutex<Versions>,
}

/// The name of a model and the role of its version.
type Version = (String, &'static str);

#[derive(Default)]
struct Versions {
    series: BTreeMap<(Version, String), RankingSeries>,
    targets: BTreeSet<String>,
}

/// Metrics of the graphs on one target, as a version ranks them.
struct RankingSeries {
    graphs: Gauge,
    configs: Gauge,
    tau: Gauge,
    ordered_pairs: Gauge,
    regret: Gauge,
    time: Gauge,
    time_error: Gauge,
}

impl QualitySeries {
    pub(super) fn new(recorder: &Arc<Recorder>) -> Self {
        // A metric without a series is not exported, so one with placeholders shows that the metric
        // exists.
        RankingSeries::new(recorder, [NONE; 3]).set(&QualitySummary::default());
        Self {
            replayed: REPLAYS.series(recorder, ["replayed"]),
            failed: REPLAYS.series(recorder, ["failed"]),
            replay_seconds: REPLAY_SECONDS.series(recorder, []),
            recorder: Arc::clone(recorder),
            versions: Mutex::default(),
        }
    }

    /// Counts a replay.
    pub fn replayed(&self, succeeded: bool, duration: Duration) {
        let counter = if succeeded {
            &self.replayed
        } else {
            &self.failed
        };
        counter.increment(1);
        self.replay_took(duration);
    }

    /// Records the time of a replay that is counted elsewhere.
    pub fn replay_took(&self, duration: Duration) {
        self.replay_seconds.record(duration);
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
        versions.clear_all_but(&current);
        for (of, summary) in current {
            let ((model, role), target) = &of;
            let new = RankingSeries::new(&self.recorder, [model, role, target]);
            versions.series.entry(of).or_insert(new).set(&summary);
        }
    }
}

impl Versions {
    /// Sets the series without a current value to zero. A series cannot be removed, and would keep
    /// its last value.
    fn clear_all_but<T>(&self, current: &BTreeMap<(Version, String), T>) {
        for (of, series) in &self.series {
            if !current.contains_key(of) {
                series.set(&QualitySummary::default());
            }
        }
    }

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
    fn new(recorder: &Recorder, labels: [&str; 3]) -> Self {
        let gauge = |family: Family<Gauge, 3>| family.series(recorder, labels);
        Self {
            graphs: gauge(GRAPHS),
            configs: gauge(CONFIGS),
            tau: gauge(KENDALL_TAU),
            ordered_pairs: gauge(ORDERED_PAIRS),
            regret: gauge(REGRET),
            time: gauge(TIME),
            time_error: gauge(TIME_ERROR),
        }
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
