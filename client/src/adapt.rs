use hlorank_graph::Configurations;
use hlorank_proto::v1::{self, ConfigBatch, MeasurementFailure};

/// Measured run times of configurations of a graph, from which the server learns for one call, or which it keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapt(v1::Adapt);

/// What came of measuring a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasuredOutcome {
    /// Its mean run time in seconds, and the number of runs.
    Time {
        /// Mean run time, from 1e-12 to 1e9.
        seconds: f64,
        /// Number of runs, from 1 to 1,000,000.
        repeats: u32,
    },
    /// It failed. It will be ranked last.
    Failed(MeasurementFailure),
}

impl Adapt {
    /// Starts with no measurements. `target` names what times are measured on: hardware, compiler and flags. Times of
    /// different targets must not be sent together.
    #[must_use]
    pub fn new(target: impl Into<String>) -> Self {
        Self(v1::Adapt {
            target: target.into(),
            ..v1::Adapt::default()
        })
    }

    /// Sets the measured configurations, at most 2,000 to learn from and 10,000 to keep, and what came of each. The server
    /// rejects lists of different lengths.
    #[must_use]
    pub fn measured(self, configurations: &Configurations, measured: &[MeasuredOutcome]) -> Self {
        let batch = (!configurations.is_empty()).then(|| configurations.to_smallest_form());
        let (mut seconds, mut repeats, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for each in measured {
            let (time, runs, failure) = match *each {
                MeasuredOutcome::Time { seconds, repeats } => {
                    (seconds, repeats, MeasurementFailure::Unspecified)
                }
                MeasuredOutcome::Failed(failure) => (0.0, 1, failure),
            };
            seconds.push(time);
            repeats.push(runs);
            failures.push(failure.into());
        }
        let batch = batch.map(|configs| ConfigBatch {
            configs: Some(configs),
        });
        Self(v1::Adapt {
            batch,
            seconds,
            repeats,
            failures,
            ..self.0
        })
    }

    /// Sets the id of each measurement, 1 to 64 bytes. A measurement that was stored with the same id counts once.
    /// Default: the id is made of the outcome.
    #[must_use]
    pub fn ids(self, ids: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let ids = ids.into_iter().map(|id| id.into().into()).collect();
        Self(v1::Adapt { ids, ..self.0 })
    }

    /// Learns also from the measurements of this graph and target that the server keeps
    /// ([`Client::report_measurements`](crate::Client::report_measurements)). Default: from none.
    #[must_use]
    pub fn use_stored(self) -> Self {
        Self(v1::Adapt {
            use_stored: true,
            ..self.0
        })
    }

    /// Learns also from those that this client itself reported: its token or, if calls need none, its address. What others
    /// reported then changes nothing. Default: from none.
    #[must_use]
    pub fn use_own_stored(self) -> Self {
        Self(v1::Adapt {
            use_stored: true,
            own_only: true,
            ..self.0
        })
    }

    /// Learns also from what the server keeps of this graph on other targets, at most 16. It says what to expect on this one,
    /// and is never mixed with what was measured on it. Default: from none.
    #[must_use]
    pub fn other_targets(self, targets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let other_targets = targets.into_iter().map(Into::into).collect();
        Self(v1::Adapt {
            other_targets,
            ..self.0
        })
    }

    /// Learns also from all other targets that have measurements of this graph, the first 16 by name. Default: from none.
    #[must_use]
    pub fn all_other_targets(self) -> Self {
        Self(v1::Adapt {
            all_other_targets: true,
            ..self.0
        })
    }

    pub(crate) fn message(&self) -> v1::Adapt {
        self.0.clone()
    }
}

impl From<v1::Adapt> for Adapt {
    fn from(message: v1::Adapt) -> Self {
        Self(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tiles;

    #[test]
    fn measurements_become_one_value_each() {
        let measured = [
            MeasuredOutcome::Time {
                seconds: 0.5,
                repeats: 3,
            },
            MeasuredOutcome::Failed(MeasurementFailure::Crash),
        ];
        let message = Adapt::new("cpu")
            .measured(&tiles(&[4, 8]), &measured)
            .message();
        assert_eq!(
            (message.target.as_str(), message.batch.is_some()),
            ("cpu", true)
        );
        assert_eq!(
            (message.seconds, message.repeats, message.failures),
            (vec![0.5, 0.0], vec![3, 1], vec![0, 2])
        );
    }

    #[test]
    fn no_measurements_have_no_batch() {
        let empty = Adapt::new("cpu").measured(&tiles(&[]), &[]);
        assert_eq!(empty, Adapt::new("cpu"));
    }
}
