//! Searches in progress, for the status page: what clients reported and lease of a graph on a target since the server started.
//!
//! A report adds its measurements here once the store has them, and a lease its worker. Nothing is read from the store, so that the page costs it nothing,
//! and memory is bounded by the numbers below: the search that was changed the longest ago gives way to a new one.

mod decision_summary;
mod importance;

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, Graph, NamedFeatureSet};
use parking_lot::Mutex;
use serde::Serialize;

pub(crate) use self::decision_summary::DecisionSummary;
use self::importance::{Trial, important_parameters};
use crate::{
    leases::LeaseWorker,
    store::{Measurement, Subject},
};

/// The searches with the latest reports.
#[derive(Default)]
pub(crate) struct Searches(Mutex<Vec<ReportedSearch>>);

/// What is known of the search for the fastest configuration of one graph on one target.
struct ReportedSearch {
    subject: Subject,
    /// The feature set that the graph's sender described, whose columns are the parameters.
    parameters: Option<Arc<NamedFeatureSet>>,
    instance: String,
    /// Digests of the configurations that were measured or failed.
    seen: HashSet<Digest>,
    failed: usize,
    fastest: Option<Trial>,
    /// Each new fastest time, with the number of configurations seen until then.
    curve: Vec<(usize, f64)>,
    /// Measured configurations of a described feature set.
    trials: Vec<Trial>,
    workers: Vec<WorkerSummary>,
    last_report: Instant,
}

/// A worker that leased configurations.
#[derive(Clone, Debug, Serialize)]
struct WorkerSummary {
    name: String,
    machine: String,
    /// Number of configurations that its last call leased.
    configs: usize,
    #[serde(skip)]
    until: Instant,
}

/// A search, as the page draws it.
#[derive(Debug, Serialize)]
pub(crate) struct SearchSummary {
    #[serde(skip)]
    pub(crate) subject: Subject,
    target: String,
    /// Digits of the graph hash.
    graph: String,
    /// Name of the described feature set; empty if there is none.
    name: String,
    instance: String,
    /// Number of configurations that were measured or failed.
    configs: usize,
    /// Number of measurements that failed.
    failed: usize,
    fastest_seconds: Option<f64>,
    /// Parameters of the fastest configuration.
    fastest: Vec<(String, f32)>,
    /// `[configurations, seconds]` of each new fastest time.
    curve: Vec<(usize, f64)>,
    /// `[configurations, seconds]` of measured configurations, evenly drawn.
    times: Vec<(usize, f64)>,
    /// The parameters that explain most of the times, and the share of the variance of the logarithms that each explains.
    important: Vec<(String, f64)>,
    seconds_since_report: u64,
    /// Workers whose leases last.
    workers: Vec<WorkerSummary>,
    /// What is decided; `None` if nothing is.
    pub(crate) decision: Option<DecisionSummary>,
}

/// Maximum number of searches.
const MAX_SEARCHES: usize = 32;

/// Maximum number of configurations of a search that are told apart; later ones are not counted.
const MAX_SEEN: usize = 20_000;

/// Maximum number of measured configurations of a search whose columns are kept.
const MAX_TRIALS: usize = 512;

/// Maximum number of columns of a configuration for them to be kept.
const MAX_PARAMETERS: usize = 64;

/// Maximum number of workers of a search.
const MAX_WORKERS: usize = 256;

/// Maximum number of times that the page draws.
const MAX_TIMES: usize = 128;

/// Maximum number of new fastest times that are kept.
const MAX_CURVE: usize = 256;

impl Searches {
    /// Adds measurements that the store has.
    pub(crate) fn add(&self, subject: &Subject, graph: &Graph, measurements: &[Measurement]) {
        self.change(subject, graph, |search| search.add(measurements));
    }

    /// Notes what a worker was given to measure.
    pub(crate) fn lease(
        &self,
        subject: &Subject,
        graph: &Graph,
        worker: &LeaseWorker,
        configs: usize,
    ) {
        self.change(subject, graph, |search| search.lease(worker, configs));
    }

    fn change(&self, subject: &Subject, graph: &Graph, change: impl FnOnce(&mut ReportedSearch)) {
        let mut searches = self.0.lock();
        let known = searches
            .iter()
            .position(|search| search.subject == *subject);
        // The last one was changed last.
        let mut search = match known {
            Some(place) => searches.remove(place),
            None => ReportedSearch::new(subject.clone(), graph),
        };
        if searches.len() == MAX_SEARCHES {
            searches.remove(0);
        }
        change(&mut search);
        searches.push(search);
    }

    /// Returns the searches, that with the latest report first.
    pub(crate) fn summaries(&self) -> Vec<SearchSummary> {
        let searches = self.0.lock();
        searches.iter().rev().map(ReportedSearch::summary).collect()
    }
}

impl ReportedSearch {
    fn new(subject: Subject, graph: &Graph) -> Self {
        let described = graph.feature_graph();
        let parameters = described.and_then(|graph| graph.description());
        let is_small = |set: &&Arc<NamedFeatureSet>| set.config_features().len() <= MAX_PARAMETERS;
        Self {
            subject,
            // Parameters of several nodes have no single value.
            parameters: parameters
                .filter(is_small)
                .filter(|_| graph.len() == 1)
                .cloned(),
            instance: described.map_or_else(String::new, |graph| graph.instance().to_owned()),
            seen: HashSet::new(),
            failed: 0,
            fastest: None,
            curve: Vec::new(),
            trials: Vec::new(),
            workers: Vec::new(),
            last_report: Instant::now(),
        }
    }

    fn add(&mut self, measurements: &[Measurement]) {
        self.last_report = Instant::now();
        for measurement in measurements {
            let digest = Digest::of_parts("hlorank 2026 search", [measurement.config.as_slice()]);
            if self.seen.len() < MAX_SEEN {
                self.seen.insert(digest);
            }
            if measurement.outcome.failure != 0 {
                self.failed += 1;
                continue;
            }
            let trial = Trial {
                values: self.values(&measurement.config),
                seconds: measurement.outcome.seconds,
                place: self.seen.len(),
            };
            let fastest = self.fastest.as_ref().map(|fastest| fastest.seconds);
            if fastest.is_none_or(|fastest| trial.seconds < fastest) {
                self.fastest = Some(trial.clone());
                // The first times are those that fall most, so the last one gives way.
                self.curve.truncate(MAX_CURVE - 1);
                self.curve.push((self.seen.len(), trial.seconds));
            }
            if self.trials.len() < MAX_TRIALS {
                self.trials.push(trial);
            }
        }
    }

    fn lease(&mut self, worker: &LeaseWorker, configs: usize) {
        let now = Instant::now();
        self.workers
            .retain(|known| known.until > now && known.name != worker.name);
        if configs > 0 && self.workers.len() < MAX_WORKERS {
            self.workers.push(WorkerSummary {
                name: worker.name.clone(),
                machine: worker.machine.clone(),
                configs,
                until: now + Duration::from_millis(worker.ttl),
            });
        }
    }

    /// The parameters of a canonical configuration, which ends with 4 bytes for each, the lowest first.
    fn values(&self, config: &[u8]) -> Vec<f32> {
        let count = self
            .parameters
            .as_ref()
            .map_or(0, |set| set.config_features().len());
        let (_, values) = config.split_at(config.len().saturating_sub(4 * count));
        let values = values.as_chunks().0.iter();
        values.map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    fn summary(&self) -> SearchSummary {
        let names = self
            .parameters
            .as_ref()
            .map_or(&[][..], |set| set.config_features());
        let fastest = self.fastest.iter().flat_map(|trial| &trial.values);
        let name = self.parameters.as_ref().map_or("", |set| set.name());
        let now = Instant::now();
        let workers = self.workers.iter().filter(|worker| worker.until > now);
        SearchSummary {
            subject: self.subject.clone(),
            target: self.subject.target.clone(),
            graph: self.subject.graph.to_string(),
            name: name.to_owned(),
            instance: self.instance.clone(),
            configs: self.seen.len(),
            failed: self.failed,
            fastest_seconds: self.fastest.as_ref().map(|trial| trial.seconds),
            fastest: names.iter().cloned().zip(fastest.copied()).collect(),
            curve: self.curve.clone(),
            times: self
                .trials
                .iter()
                .step_by(self.trials.len().div_ceil(MAX_TIMES).max(1))
                .map(|trial| (trial.place, trial.seconds))
                .collect(),
            important: important_parameters(names, &self.trials),
            seconds_since_report: self.last_report.elapsed().as_secs(),
            workers: workers.cloned().collect(),
            decision: None,
        }
    }
}
