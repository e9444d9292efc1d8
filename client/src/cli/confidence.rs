use std::fmt::{self, Display, Formatter};

use hlorank_client::v1;
use serde::Serialize;

use super::output::counted;

/// How far a ranking can be trusted.
#[derive(Debug, Serialize)]
pub(crate) struct Confidence {
    /// How many of the first configurations to measure.
    measure_first: u32,
    /// Nodes of the graph whose opcodes the server does not know.
    unknown_opcodes: u32,
    /// Kendall's tau of the ranking and the run times, as expected, and an interval that holds it for four of five lists.
    expected_tau: Option<f64>,
    expected_tau_low: Option<f64>,
    expected_tau_high: Option<f64>,
}

impl From<v1::Confidence> for Confidence {
    fn from(confidence: v1::Confidence) -> Self {
        Self {
            measure_first: confidence.measure_first,
            unknown_opcodes: confidence.unknown_opcodes,
            expected_tau: confidence.expected_tau,
            expected_tau_low: confidence.expected_tau_low,
            expected_tau_high: confidence.expected_tau_high,
        }
    }
}

impl Display for Confidence {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.write_expected_tau(formatter)?;
        if self.unknown_opcodes > 0 {
            let opcodes = counted(self.unknown_opcodes as usize, "opcode");
            write!(formatter, "{opcodes} unknown to the models; ")?;
        }
        let first = counted(self.measure_first as usize, "configuration");
        write!(
            formatter,
            "measure the first {first}, more on hardware that the models do not know."
        )
    }
}

impl Confidence {
    fn write_expected_tau(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // The server sets the ends of the interval whenever it sets the tau.
        let interval = self.expected_tau_low.zip(self.expected_tau_high);
        let Some((tau, (low, high))) = self.expected_tau.zip(interval) else {
            return Ok(());
        };
        write!(
            formatter,
            "Expected tau with run times {tau:.2} ({low:.2} to {high:.2}); "
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_says_what_is_expected_and_what_to_measure() {
        let expected = Confidence::from(v1::Confidence {
            expected_tau: Some(0.62),
            expected_tau_low: Some(0.4),
            expected_tau_high: Some(0.84),
            measure_first: 5,
            ..v1::Confidence::default()
        });
        assert_eq!(
            expected.to_string(),
            "Expected tau with run times 0.62 (0.40 to 0.84); measure the first 5 configurations, more on hardware that the \
             models do not know."
        );
    }
}
