//! The measured configurations that a call learns from, its own joined with stored ones, and whose they are.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use hlorank_adaptation::{Measurements, Point};
use hlorank_graph::{ConfigurationError, Configurations, SegmentedGraph, pace};

use crate::{
    store::{Measurement, Outcome, Reporter},
    stored_measurements::{measurement_bytes, read_canonical},
};

/// Measured configurations, and what came of each.
pub(super) struct MeasuredConfigs {
    pub(super) configurations: Arc<Configurations>,
    pub(super) outcomes: Vec<Outcome>,
    /// `[configurations]` who reported each; the call's client if it sent it.
    pub(super) reporters: Vec<Reporter>,
    /// `[configurations]` the first measurement with the same configuration, id and outcome, which another reported.
    twins: Vec<usize>,
    /// Number of those that the call sent, which come first.
    sent: usize,
    /// The call's client.
    pub(super) client: Reporter,
}

/// What one reporter measured of the call's graph on its target.
pub(crate) struct ReporterShare {
    pub(crate) reporter: Reporter,
    /// Number of distinct configurations that have a time.
    pub(crate) measured: usize,
    /// `[shared configurations]` the absolute differences between its mean ln(seconds) and that of the other reporters.
    differences: Vec<f64>,
}

/// The measurements that a call sent.
pub(super) struct SentConfigs {
    /// `None` if there are none.
    pub(super) configurations: Option<Configurations>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) ids: Vec<Vec<u8>>,
    /// The call's client.
    pub(super) reporter: Reporter,
}

impl MeasuredConfigs {
    /// The number of stored measurements. What two reporters report alike counts once.
    pub(super) fn stored(&self) -> usize {
        let stored = self.sent..self.outcomes.len();
        stored
            .filter(|&number| self.twins[number] == number)
            .count()
    }

    /// What the call's client measured and, of other configurations, what others measured, given the points.
    pub(super) fn measurements(&self, points: &[Point]) -> Measurements {
        let is_own = |number: usize| self.reporters[number] == self.client;
        // What two reporters report alike counts once.
        let distinct =
            (0..points.len()).filter(|&number| is_own(number) || self.twins[number] == number);
        measurements_of(distinct.map(|number| {
            (
                points[number].clone(),
                self.outcomes[number],
                is_own(number),
            )
        }))
    }

    /// Compares reporters by what several of them measured, given the points. The call's client comes first, then those with the
    /// most configurations.
    pub(super) fn reporter_shares(&self, points: &[Point]) -> Vec<ReporterShare> {
        let timed = (0..points.len()).filter(|&number| self.outcomes[number].failure == 0);
        let mut timed: Vec<usize> = timed.collect();
        timed.sort_by(|&one, &other| points[one].compare(&points[other]));
        let mut shares = BTreeMap::<_, ReporterShare>::new();
        for same in pace::in_steps(
            64,
            timed.chunk_by(|&one, &other| points[one] == points[other]),
        ) {
            // The sums of the logarithms of times and of the runs of each reporter.
            let mut sums = BTreeMap::<_, [f64; 2]>::new();
            for &number in same {
                let outcome = self.outcomes[number];
                let runs = f64::from(outcome.repeats);
                let sum = sums.entry(&self.reporters[number]).or_default();
                sum[0] += runs * libm::log(outcome.seconds);
                sum[1] += runs;
            }
            let all = sums
                .values()
                .fold([0.0; 2], |[log, runs], own| [log + own[0], runs + own[1]]);
            for (&reporter, [log, runs]) in &sums {
                let share = shares.entry(reporter).or_insert_with(|| ReporterShare {
                    reporter: reporter.clone(),
                    measured: 0,
                    differences: Vec::new(),
                });
                share.measured += 1;
                if sums.len() > 1 {
                    let others = (all[0] - log) / (all[1] - runs);
                    share.differences.push((log / runs - others).abs());
                }
            }
        }
        let mut shares: Vec<ReporterShare> = shares.into_values().collect();
        // Sorting is stable, so that reporters with equally many configurations keep the order of names.
        shares.sort_by_key(|share| (share.reporter != self.client, Reverse(share.measured)));
        shares
    }
}

/// What the call's client measured and, of other configurations, what others measured, given the point of each, what came of it, and
/// whether it is the client's own.
pub(super) fn measurements_of(
    measured: impl Iterator<Item = (Point, Outcome, bool)>,
) -> Measurements {
    // A configuration that the model gives no score tells nothing of how times rise with scores.
    let finite = measured.filter(|(point, ..)| point.score.is_finite());
    let (own, others): (Vec<_>, Vec<_>) = finite.partition(|(.., is_own)| *is_own);
    let [own, others] = [own, others].map(|some| {
        let measurement =
            |(point, outcome, _): (Point, Outcome, bool)| hlorank_adaptation::Measurement {
                point,
                seconds: (outcome.failure == 0).then_some(outcome.seconds),
                repeats: outcome.repeats,
            };
        Measurements::new(some.into_iter().map(measurement).collect())
    });
    own.completed_by(others)
}

/// Joins measurements that a call sent with stored ones of the same graph. A stored one that was sent too counts once.
/// Returns nothing if there are none, and why stored ones cannot be used. `columns` is the number of configuration columns that
/// the model takes, if it names them.
pub(super) fn join(
    graph: &SegmentedGraph,
    columns: Option<usize>,
    sent: SentConfigs,
    stored: Vec<Measurement>,
) -> (Option<MeasuredConfigs>, Option<ConfigurationError>) {
    match joined(graph, columns, &sent, stored) {
        Ok(measured) => (Some(measured), None),
        Err(error) => (sent.into_measured(), Some(error)),
    }
}

fn joined(
    graph: &SegmentedGraph,
    columns: Option<usize>,
    sent: &SentConfigs,
    stored: Vec<Measurement>,
) -> Result<MeasuredConfigs, ConfigurationError> {
    let mut configs = Vec::new();
    if let Some(own) = &sent.configurations {
        configs.extend((0..own.len()).map(|config| own.canonical(config)));
    }
    // A stored measurement that was sent too counts once.
    let known: HashSet<(&Vec<u8>, &Vec<u8>)> = configs.iter().zip(&sent.ids).collect();
    let is_new = |each: &Measurement| !known.contains(&(&each.config, &each.id));
    let stored: Vec<Measurement> = stored.into_iter().filter(is_new).collect();
    let count = sent.outcomes.len();
    // Two runs hardly take the same time to the last bit: one run was reported by several clients,
    // and is no more certain for it.
    let mut first = HashMap::new();
    let of_stored = (count..).zip(&stored).map(|(number, each)| {
        let Outcome {
            seconds,
            repeats,
            failure,
        } = each.outcome;
        let same = (&each.config, &each.id, seconds.to_bits(), repeats, failure);
        *first.entry(same).or_insert(number)
    });
    let twins = (0..count).chain(of_stored).collect();
    let mut outcomes = sent.outcomes.clone();
    let mut reporters = vec![sent.reporter.clone(); count];
    for measurement in stored {
        configs.push(measurement.config);
        outcomes.push(measurement.outcome);
        reporters.push(measurement.reporter);
    }
    let configs: Vec<&[u8]> = configs.iter().map(Vec::as_slice).collect();
    let configurations = read_canonical(graph, &configs)?;
    match (configurations.columns(), columns) {
        (Some(found), Some(expected)) if found != expected => {
            Err(ConfigurationError::WrongColumns { found, expected })
        }
        _ => Ok(MeasuredConfigs {
            configurations: Arc::new(configurations),
            outcomes,
            reporters,
            twins,
            sent: count,
            client: sent.reporter.clone(),
        }),
    }
}

impl SentConfigs {
    /// Bytes that the configurations take in the form in which they are stored, and in a batch that is read from it.
    pub(super) fn canonical_bytes(&self, graph: &SegmentedGraph) -> usize {
        self.configurations.as_ref().map_or(0, |sent| {
            measurement_bytes(graph, sent.columns(), sent.len())
        })
    }

    /// Returns what was sent alone; nothing if nothing was.
    pub(super) fn into_measured(self) -> Option<MeasuredConfigs> {
        let configurations = self.configurations?;
        let count = self.outcomes.len();
        Some(MeasuredConfigs {
            configurations: Arc::new(configurations),
            outcomes: self.outcomes,
            reporters: vec![self.reporter.clone(); count],
            twins: (0..count).collect(),
            sent: count,
            client: self.reporter,
        })
    }
}

impl ReporterShare {
    /// Number of its configurations that other reporters measured, too.
    pub(crate) fn shared(&self) -> usize {
        self.differences.len()
    }

    /// By what factor its times of these differ from those of the others, as a median; 0 if there are none.
    pub(crate) fn times_differ_by(&self) -> f64 {
        let mut sorted = self.differences.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
            .get(sorted.len() / 2)
            .map_or(0.0, |&median| libm::exp(median))
    }
}
