//! The measured configurations that a call learns from: its own, joined with stored ones.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use hlorank_graph::{ConfigurationError, Configurations, SegmentedGraph};

use crate::{
    store::{Measurement, Outcome, Reporter},
    stored_measurements::read_canonical,
};

/// Measured configurations, and what came of each.
pub(super) struct MeasuredConfigs {
    pub(super) configurations: Arc<Configurations>,
    pub(super) outcomes: Vec<Outcome>,
    /// `[configurations]` who reported each; the call's client if it sent it.
    pub(super) reporters: Vec<Option<Reporter>>,
    /// `[configurations]` the first measurement with the same configuration, id and outcome, which another reported.
    twins: Vec<usize>,
    /// Number of those that the call sent, which come first.
    sent: usize,
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
    /// Whether the call sent a measurement.
    pub(super) fn is_sent(&self, number: usize) -> bool {
        number < self.sent
    }

    /// The numbers of the measurements by reporters that `keeps` keeps. What two of them report alike counts once.
    pub(super) fn kept(&self, keeps: impl Fn(Option<&Reporter>) -> bool) -> Vec<usize> {
        let mut known = HashSet::new();
        let is_kept = |number: &usize| {
            keeps(self.reporters[*number].as_ref())
                && (self.is_sent(*number) || known.insert(self.twins[*number]))
        };
        (0..self.outcomes.len()).filter(is_kept).collect()
    }
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
    if stored.is_empty() {
        return (sent.into_measured(), None);
    }
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
    let new = sent.unsent(&configs, stored);
    let mut outcomes = sent.outcomes.clone();
    let count = outcomes.len();
    let mut reporters = vec![Some(sent.reporter.clone()); count];
    let mut twins: Vec<usize> = (0..count).collect();
    let mut first = HashMap::new();
    for measurement in new {
        let number = outcomes.len();
        let outcome = measurement.outcome;
        let what_twins_share = (
            measurement.config.clone(),
            measurement.id,
            outcome.seconds.to_bits(),
            outcome.repeats,
            outcome.failure,
        );
        twins.push(*first.entry(what_twins_share).or_insert(number));
        configs.push(measurement.config);
        outcomes.push(outcome);
        reporters.push(measurement.reporter);
    }
    let configs: Vec<&[u8]> = configs.iter().map(Vec::as_slice).collect();
    Ok(MeasuredConfigs {
        configurations: Arc::new(read_canonical(graph, &configs)?),
        outcomes,
        reporters,
        twins,
        sent: count,
    })
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
        let sent: HashSet<(&[u8], &[u8])> = configs
            .iter()
            .zip(&self.ids)
            .map(|(config, id)| (&config[..], &id[..]))
            .collect();
        let is_new = |each: &Measurement| !sent.contains(&(&each.config[..], &each.id[..]));
        stored.into_iter().filter(is_new).collect()
    }

    /// Returns what was sent alone; nothing if nothing was.
    fn into_measured(self) -> Option<MeasuredConfigs> {
        let configurations = self.configurations?;
        let count = self.outcomes.len();
        Some(MeasuredConfigs {
            configurations: Arc::new(configurations),
            outcomes: self.outcomes,
            reporters: vec![Some(self.reporter); count],
            twins: (0..count).collect(),
            sent: count,
        })
    }
}
