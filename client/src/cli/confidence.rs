use std::fmt::{self, Display, Formatter};

use hlorank_client::v1;
use serde::Serialize;

use super::output::counted;

/// How far a ranking can be trusted.
#[derive(Debug, Serialize)]
pub(crate) struct Confidence {
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
            unknown_opcodes: confidence.unknown_opcodes,
            expected_tau: confidence.expected_tau,
            expected_tau_low: confidence.expected_tau_low,
            expected_tau_high: confidence.expected_tau_high,
        }
    }
}

impl Display for Confidence {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        // The server sets the ends of the interval whenever it sets the tau.
        let interval = self.expected_tau_low.zip(self.expected_tau_high);
        if let Some((tau, (low, high))) = self.expected_tau.zip(interval) {
            parts.push(format!(
                "expected tau with run times {tau:.2} ({low:.2} to {high:.2})"
            ));
        }
        if self.unknown_opcodes > 0 {
            let opcodes = counted(self.unknown_opcodes as usize, "opcode");
            parts.push(format!("{opcodes} unknown to the models"));
        }
        write!(formatter, "Confidence: {}.", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_says_what_is_expected_and_what_is_unknown() {
        let expected = Confidence::from(v1::Confidence {
            expected_tau: Some(0.62),
            expected_tau_low: Some(0.4),
            expected_tau_high: Some(0.84),
            unknown_opcodes: 1,
        });
        assert_eq!(
            expected.to_string(),
            "Confidence: expected tau with run times 0.62 (0.40 to 0.84); 1 opcode unknown to the models."
        );
    }
}
