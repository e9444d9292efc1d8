//! Scores and their units.

use hlorank_client::v1::ScoreUnit;

use super::output::seconds;

/// Returns the name of a unit, if scores have one.
pub(crate) fn unit_name(unit: ScoreUnit) -> Option<&'static str> {
    match unit {
        ScoreUnit::Unspecified => None,
        ScoreUnit::Seconds => Some("seconds"),
        ScoreUnit::LogSeconds => Some("ln(seconds)"),
    }
}

/// Formats a score with its unit.
pub(crate) fn score_text(unit: ScoreUnit, score: f32) -> String {
    match unit {
        // The score is infinite if a kernel of the fusion is beyond the model's limits.
        ScoreUnit::Seconds if score.is_finite() => seconds(score),
        _ => format!("{score:.4}"),
    }
}
