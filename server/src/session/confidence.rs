//! Says how far a ranking can be trusted.

use super::Session;
use crate::{
    adaptation::{Confidence, Signs},
    graphs::Warning,
    learning::Lesson,
    model::ExpectedTau,
};

/// How far a ranking can be trusted.
pub(crate) struct Assessment {
    pub(crate) confidence: Confidence,
    /// Number of nodes of the graph whose opcodes are unknown.
    pub(crate) unknown_opcodes: usize,
}

/// A lower expected tau is worth a warning.
const UNSURE: f64 = 0.3;

/// Warns that little is expected of a ranking.
fn unsure(confidence: &Confidence, model: &str) -> Option<Warning> {
    let expected = confidence
        .expected
        .filter(|expected| expected.tau < UNSURE)?;
    let (low, high) = expected.interval();
    let message = format!(
        "the ranking by `{model}` is expected to agree with run times by a Kendall's tau of {:.2} ({low:.2} to {high:.2}): the list is \
         unlike those that the model was validated on, or its scores hardly differ; measure {} configurations that SuggestConfigs \
         chooses, or random ones, and send their times as `adapt`",
        expected.tau, confidence.measure_first
    );
    Some(Warning {
        reason: "RANKING_UNSURE",
        message,
    })
}

impl Session {
    /// Judges the ranking of what was scored.
    pub(crate) fn assess(&mut self) -> Assessment {
        let signs = Signs {
            task: self.graph.task,
            calibrated: self.calibrated(),
            suits: self.suits,
            basis: self.lesson.as_ref().and_then(Lesson::basis),
        };
        let confidence = Confidence::of(&signs);
        // A call that sent measurements already does what the warning asks for.
        if signs.basis.is_none() {
            let warning = unsure(&confidence, &self.model.manifest().name);
            self.warnings.extend(warning);
        }
        Assessment {
            confidence,
            unknown_opcodes: self.graph.whole.unknown_opcodes(),
        }
    }

    /// What the model's validation data say of a list like that of the call, if its artifact has some.
    fn calibrated(&self) -> Option<ExpectedTau> {
        let calibration = self.model.artifact().calibration()?;
        Some(calibration.expected(&self.seen.traits()?))
    }
}
