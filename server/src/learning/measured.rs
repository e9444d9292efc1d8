//! The measured configurations that a call learns from: its own, joined with stored ones.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use hlorank_graph::{ConfigurationError, Configurations, SegmentedGraph};

use crate::{
    adaptation::{self, Measurements, Point},
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

/// Measured configurations, and the point of each.
pub(super) struct MeasuredPoints {
    pub(super) configs: MeasuredConfigs,
    pub(super) points: Vec<Point>,
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
}

impl MeasuredPoints {
    /// What the call's client measured and, of other configurations, what others measured.
    pub(super) fn measurements(&self) -> Measurements {
        let configs = &self.configs;
        let is_own = |number: usize| configs.reporters[number] == configs.client;
        let all = 0..self.points.len();
        // What two reporters report alike counts once.
        let distinct = all.filter(|&number| is_own(number) || configs.twins[number] == number);
        measurements_of(distinct.map(|number| MeasuredPoint {
            point: self.points[number].clone(),
            outcome: configs.outcomes[number],
            is_own: is_own(number),
        }))
    }
}

/// The point of a measured configuration, and what came of it.
pub(super) struct MeasuredPoint {
    pub(super) point: Point,
    pub(super) outcome: Outcome,
    /// Whether the call's client measured it.
    pub(super) is_own: bool,
}

/// What the call's client measured and, of other configurations, what others measured.
pub(super) fn measurements_of(measured: impl Iterator<Item = MeasuredPoint>) -> Measurements {
    // A configuration that the model gives no score tells nothing of how times rise with scores.
    let finite = measured.filter(|each| each.point.score.is_finite());
    let (own, others): (Vec<_>, Vec<_>) = finite.partition(|each| each.is_own);
    let [own, others] = [own, others].map(|some| {
        let measurement = |MeasuredPoint { point, outcome, .. }| adaptation::Measurement {
            point,
            seconds: (outcome.failure == 0).then_some(outcome.seconds),
            repeats: outcome.repeats,
        };
        Measurements::of(some.into_iter().map(measurement).collect())
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
    let joined = joined(graph, &sent, stored).and_then(|measured| {
        check_columns(&measured, columns)?;
        Ok(measured)
    });
    match joined {
        Ok(measured) => (Some(measured), None),
        Err(error) => (sent.into_measured(), Some(error)),
    }
}

fn joined(
    graph: &SegmentedGraph,
    sent: &SentConfigs,
    stored: Vec<Measurement>,
) -> Result<MeasuredConfigs, ConfigurationError> {
    let mut configs = sent.canonical();
    let stored = sent.unsent(&configs, stored);
    let mut outcomes = sent.outcomes.clone();
    let count = outcomes.len();
    let mut reporters = vec![sent.reporter.clone(); count];
    let twins = twins(count, &stored);
    for measurement in stored {
        configs.push(measurement.config);
        outcomes.push(measurement.outcome);
        reporters.push(measurement.reporter);
    }
    let configs: Vec<&[u8]> = configs.iter().map(Vec::as_slice).collect();
    Ok(MeasuredConfigs {
        configurations: Arc::new(read_canonical(graph, &configs)?),
        outcomes,
        reporters,
        twins,
        sent: count,
        client: sent.reporter.clone(),
    })
}

/// `[measured]` the first measurement that is the same as each, given how many were sent, which
/// come first, and the stored ones.
fn twins(sent: usize, stored: &[Measurement]) -> Vec<usize> {
    let mut first = HashMap::new();
    // Two runs hardly take the same time to the last bit: one run was reported by several clients,
    // and is no more certain for it.
    let of_stored = (sent..).zip(stored).map(|(number, each)| {
        let Outcome {
            seconds,
            repeats,
            failure,
        } = each.outcome;
        let same = (&each.config, &each.id, seconds.to_bits(), repeats, failure);
        *first.entry(same).or_insert(number)
    });
    (0..sent).chain(of_stored).collect()
}

/// Checks that stored configurations have the columns that the model takes.
fn check_columns(
    measured: &MeasuredConfigs,
    columns: Option<usize>,
) -> Result<(), ConfigurationError> {
    match (measured.configurations.columns(), columns) {
        (Some(found), Some(expected)) if found != expected => {
            Err(ConfigurationError::WrongColumns { found, expected })
        }
        _ => Ok(()),
    }
}

impl SentConfigs {
    /// Bytes that the configurations take in the form in which they are stored, and in a batch that is read from it.
    pub(super) fn canonical_bytes(&self, graph: &SegmentedGraph) -> usize {
        self.configurations.as_ref().map_or(0, |sent| {
            measurement_bytes(graph, sent.columns(), sent.len())
        })
    }

    /// The configurations in the form in which they are stored.
    fn canonical(&self) -> Vec<Vec<u8>> {
        let Some(sent) = &self.configurations else {
            return Vec::new();
        };
        let numbers = 0..sent.len();
        numbers.map(|config| sent.canonical(config)).collect()
    }

    /// Leaves out what was sent too, given the canonical configurations of what was sent.
    fn unsent(&self, configs: &[Vec<u8>], stored: Vec<Measurement>) -> Vec<Measurement> {
        let sent: HashSet<(&Vec<u8>, &Vec<u8>)> = configs.iter().zip(&self.ids).collect();
        let is_new = |each: &Measurement| !sent.contains(&(&each.config, &each.id));
        stored.into_iter().filter(is_new).collect()
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
