//! Measurements that a user gives, and predicted run times.

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use hlorank_client::{Adapt, MeasuredOutcome, Ranking, v1};
use hlorank_graph::Graph;
use serde::{Deserialize, Serialize, de::Error as _};

use crate::{
    configuration::{Json, not_json, read_text},
    error::CommandError,
    output::seconds,
};

const MEASURED_LONG: &str = r#"JSON list of measured configurations of the graph, in the order measured, from which the server learns for this
call: {"configuration": {...}, "seconds": 0.0021} or {"configuration": {...}, "failure": "crash"}, with configurations
as in --configs. Failures are `compile`, `crash`, `wrong_result`, `timeout` and `invalid`"#;

/// The arguments with measurements.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measurements")]
pub(crate) struct Measurements {
    /// JSON list of measured configurations; `--help` has the form
    #[arg(long, value_name = "FILE", long_help = MEASURED_LONG)]
    measured: Option<PathBuf>,
    /// What the configurations are for: `HARDWARE, COMPILER VERSION, FLAG, ...`
    ///
    /// The server selects the model by it. The times of --measured belong to it, or else to `local`; times of different targets must
    /// not be mixed.
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Learn also from kept measurements: all, or `own`
    ///
    /// They are those of the graph that clients reported on --target, and for tiles also those of kernels with the same structure. This
    /// client's own are those of its token or, if the server has none, of its address.
    #[arg(long, value_name = "WHOSE", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    #[arg(hide_possible_values = true)]
    stored: Option<StoredSource>,
}

/// The target of measurements for which none is named. It is not sent for a ranking without any: no model was trained for it, so that
/// nothing would be expected of the ranking.
const LOCAL: &str = "local";

/// Whose measurements to learn from.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StoredSource {
    All,
    Own,
}

/// Measurements that were read.
pub(crate) struct ReadMeasurements {
    pub(crate) adapt: Adapt,
    /// Number of measurements since the fastest one.
    pub(crate) since_improvement: u32,
}

/// One measured configuration as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasuredForm {
    configuration: serde_json::Value,
    seconds: Option<f64>,
    failure: Option<v1::MeasurementFailure>,
    repeats: Option<u32>,
}

/// A predicted run time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Prediction {
    pub(crate) seconds: f32,
    /// Standard deviation of ln(seconds).
    pub(crate) log_sd: f32,
}

impl Prediction {
    /// Returns the prediction of the configuration at this place of a ranking, if scores are adapted.
    pub(crate) fn at_place(ranking: &Ranking, place: usize) -> Option<Self> {
        Some(Self {
            seconds: *ranking.predicted_seconds.get(place)?,
            log_sd: *ranking.log_sd.get(place)?,
        })
    }
}

impl Measurements {
    /// What the configurations are for.
    pub(crate) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }

    /// Reads the measurements of a graph; `None` if there is no file of them, and stored ones are not asked for.
    pub(crate) fn read(&self, graph: &Graph) -> Result<Option<ReadMeasurements>, CommandError> {
        let adapt = Adapt::new(self.target.as_deref().unwrap_or(LOCAL));
        let adapt = match self.stored {
            None => adapt,
            Some(StoredSource::All) => adapt.use_stored(),
            Some(StoredSource::Own) => adapt.use_own_stored(),
        };
        let learned = |adapt, since_improvement| {
            Ok(Some(ReadMeasurements {
                adapt,
                since_improvement,
            }))
        };
        let Some(path) = &self.measured else {
            return self.stored.map_or(Ok(None), |_| learned(adapt, 0));
        };
        let checked = |forms: Vec<MeasuredForm>| {
            // Every measurement has one outcome.
            let is_wrong = |form: &MeasuredForm| form.seconds.is_some() == form.failure.is_some();
            match forms.iter().position(is_wrong) {
                None => Ok(forms),
                Some(number) => Err(serde_json::Error::custom(format!(
                    "measurement {number} needs either `seconds` or `failure`"
                ))),
            }
        };
        let text = read_text(path)?;
        let forms = serde_json::from_str(&text).and_then(checked);
        let forms = forms.map_err(|error| not_json(path, &text, &error))?;
        // A search begins with an empty list, but a batch of configurations may not be empty.
        if forms.is_empty() {
            return learned(adapt, 0);
        }
        let outcomes: Vec<MeasuredOutcome> = forms.iter().map(MeasuredForm::outcome).collect();
        let configurations = forms.into_iter().map(|form| form.configuration).collect();
        let configurations = Json::Values(configurations).read(path, graph)?;
        let since = since_improvement(&outcomes);
        learned(adapt.measured(&configurations, &outcomes), since)
    }
}

fn since_improvement(outcomes: &[MeasuredOutcome]) -> u32 {
    let mut fastest = f64::INFINITY;
    let mut since = 0;
    for outcome in outcomes {
        match outcome {
            MeasuredOutcome::Time { seconds, .. } if *seconds < fastest => {
                (fastest, since) = (*seconds, 0);
            }
            _ => since += 1,
        }
    }
    since
}

impl MeasuredForm {
    /// Returns what came of measuring it.
    fn outcome(&self) -> MeasuredOutcome {
        match self.failure {
            Some(failure) => MeasuredOutcome::Failed(failure),
            None => MeasuredOutcome::Time {
                seconds: self.seconds.unwrap_or_default(),
                repeats: self.repeats.unwrap_or(1),
            },
        }
    }
}

impl Display for Prediction {
    /// Formats the time, and the times one standard deviation below and above it.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // The deviation is that of the logarithm, so the interval is a factor and not a difference.
        let factor = self.log_sd.exp();
        let [low, high] = [self.seconds / factor, self.seconds * factor].map(seconds);
        write!(formatter, "{} ({low} to {high})", seconds(self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(seconds: f64) -> MeasuredOutcome {
        MeasuredOutcome::Time {
            seconds,
            repeats: 1,
        }
    }

    #[test]
    fn measurements_since_the_fastest_are_counted() {
        let failed = MeasuredOutcome::Failed(v1::MeasurementFailure::Crash);
        assert_eq!(since_improvement(&[measured(3.0), measured(2.0)]), 0);
        let times = [measured(2.0), measured(3.0), failed, measured(2.0)];
        assert_eq!(since_improvement(&times), 3);
    }

    #[test]
    fn a_prediction_has_an_interval() {
        let shown = |seconds, log_sd| Prediction { seconds, log_sd }.to_string();
        assert_eq!(shown(0.001_79, 0.1), "1.79 ms (1.62 ms to 1.98 ms)");
        assert_eq!(shown(2.5e-7, 0.02), "250 ns (245 ns to 255 ns)");
        assert_eq!(shown(0.5, 1.0), "500.00 ms (183.94 ms to 1.36 s)");
    }
}
