use serde::Deserialize;

/// The unit of a model's scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreUnit {
    /// Scores only order configurations.
    #[default]
    None,
    /// Scores are seconds of run time.
    Seconds,
}

/// What is expected of the run times of a graph before any is measured.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// How much ln(seconds) rises per unit of score.
    pub slope: f64,
    /// Standard deviation of what the score does not explain of ln(seconds).
    pub spread: f64,
    /// Probability that scores say nothing of run times.
    #[serde(skip, default = "doubt_of_models")]
    pub doubt: f64,
}

const fn doubt_of_models() -> f64 {
    0.3
}

impl Prior {
    /// What is expected of a model with this slope and spread.
    pub const fn of_model(slope: f64, spread: f64) -> Self {
        Self {
            slope,
            spread,
            doubt: doubt_of_models(),
        }
    }

    /// What is expected of a model whose manifest does not say it. Scores without unit may have any scale, so little is expected
    /// of them.
    pub const fn of_unit(unit: ScoreUnit) -> Self {
        // The logarithm of seconds is what a score in seconds is learned from.
        let slope = match unit {
            ScoreUnit::Seconds => 1.0,
            ScoreUnit::None => 0.05,
        };
        Self::of_model(slope, 0.5)
    }
}
