//! Says how far a ranking can be trusted.

use super::{Query, Scored};
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
    /// What to do if little is expected.
    pub(crate) warning: Option<Warning>,
}

/// A lower expected tau is worth a warning.
const UNSURE: f64 = 0.3;

impl Query {
    /// Judges the ranking of what was scored.
    pub(crate) fn assess(&self, scored: &Scored) -> Assessment {
        let lesson = self.lesson.as_ref();
        let expected = match lesson.filter(|lesson| lesson.replaces_order()) {
            Some(lesson) => expected_of(lesson, scored),
            None => self.calibrated(scored),
        };
        Assessment {
            warning: self.unsure(scored, expected),
            expected,
            unknown_opcodes: self.graph.whole.unknown_opcodes(),
        }
    }

    /// What the model's validation data say of a list like that of the call, if its artifact has some and the call is not about
    /// other configurations.
    fn calibrated(&self, scored: &Scored) -> Option<ExpectedTau> {
        if self.choice.suits == TargetMatch::OtherCompiler {
            return None;
        }
        let calibration = self.model.artifact().calibration()?;
        calibration.expected(&scored.seen.traits(scored.scores())?)
    }

    /// Warns that little is expected of a ranking, or nothing although the model's artifact says what to expect of other lists.
    fn unsure(&self, scored: &Scored, expected: Option<ExpectedTau>) -> Option<Warning> {
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
            None if !replaced && scored.seen.traits(scored.scores()).is_some() => format!(
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

/// What is expected of a ranking by what was learned. The model's validation data say nothing of it.
fn expected_of(lesson: &Lesson, scored: &Scored) -> Option<ExpectedTau> {
    let Some(basis) = lesson.basis() else {
        return lesson.expected_by_sources();
    };
    let left = scored.scores().len().saturating_sub(basis.learned);
    scored.configs.sample.expected_tau(&basis, left)
}
