//! Says how far a ranking can be trusted.

use super::Session;
use crate::{
    graphs::Warning,
    learning::Lesson,
    model::{ExpectedTau, TargetMatch},
};

/// How far a ranking can be trusted.
pub(crate) struct Assessment {
    /// Kendall's tau of the ranking and the run times, as expected; `None` if nothing tells it.
    pub(crate) expected: Option<ExpectedTau>,
    /// Number of nodes of the graph whose opcodes are unknown.
    pub(crate) unknown_opcodes: usize,
}

/// A lower expected tau is worth a warning.
const UNSURE: f64 = 0.3;

impl Session {
    /// Judges the ranking of what was scored, before [`Self::rank`] takes the scores.
    pub(crate) fn assess(&mut self) -> Assessment {
        let lesson = self.lesson.as_ref();
        let expected = match lesson.filter(|lesson| lesson.replaces_order()) {
            Some(lesson) => self.expected_of(lesson),
            None => self.calibrated(),
        };
        self.warnings.extend(self.unsure(expected));
        Assessment {
            expected,
            unknown_opcodes: self.graph.whole.unknown_opcodes(),
        }
    }

    /// What is expected of a ranking by what was learned. The model's validation data say nothing of it.
    fn expected_of(&self, lesson: &Lesson) -> Option<ExpectedTau> {
        let Some(basis) = lesson.basis() else {
            return lesson.expected_by_sources();
        };
        let left = self.scores.len().saturating_sub(basis.learned);
        self.sample.expected_tau(&basis, left)
    }

    /// What the model's validation data say of a list like that of the call, if its artifact has some and the call is not about
    /// other configurations.
    fn calibrated(&self) -> Option<ExpectedTau> {
        if self.suits == TargetMatch::OtherCompiler {
            return None;
        }
        let calibration = self.model.artifact().calibration()?;
        calibration.expected(&self.seen.traits(&self.scores)?)
    }

    /// Warns that little is expected of a ranking, or nothing although the model's artifact says what to expect of other lists.
    fn unsure(&self, expected: Option<ExpectedTau>) -> Option<Warning> {
        let model = &self.model.manifest().name;
        let replaced = self.lesson.as_ref().is_some_and(Lesson::replaces_order);
        let what = match expected {
            Some(expected) if expected.tau < UNSURE => {
                let (low, high) = expected.interval();
                format!(
                    "the ranking is expected to agree with run times by a Kendall's tau of {:.2} ({low:.2} to {high:.2})",
                    expected.tau
                )
            }
            None if !replaced && self.seen.traits(&self.scores).is_some() => format!(
                "nothing tells how well `{model}` ranks the list: it is unlike those that the model was validated on, or for another \
                 compiler"
            ),
            _ => return None,
        };
        let message = format!(
            "{what}; measure configurations that SuggestConfigs chooses, or random ones, and send their times as `adapt`"
        );
        Some(Warning {
            reason: "RANKING_UNSURE",
            message,
        })
    }
}
