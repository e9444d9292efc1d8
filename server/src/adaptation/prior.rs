use hlorank_graph::Task;

use crate::model::ScoreUnit;

/// What is expected of the run times of a graph before any is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    /// How much ln(seconds) rises per unit of score.
    pub(super) slope: f64,
    /// Standard deviation of what the score does not explain of ln(seconds).
    pub(super) spread: f64,
}

impl Prior {
    /// How much a score has to rise for ln(seconds) to rise by the spread.
    pub(super) fn score_unit(self) -> f64 {
        self.spread / self.slope
    }

    /// What is expected if a pool has taken the place of scores.
    pub(crate) fn pooled(self) -> Self {
        Self { slope: 1.0, ..self }
    }

    /// All that it consists of.
    pub(super) fn numbers(self) -> [f64; 2] {
        [self.slope, self.spread]
    }
}

impl Prior {
    /// Medians over the measured graphs of each task, for the models that ship. A model of fusions predicts the time itself.
    /// Other scores without unit may have any scale, so little is expected of them.
    pub(crate) fn of(task: Task, unit: ScoreUnit) -> Self {
        match (task, unit) {
            (Task::Layout, _) => Self {
                slope: 0.038,
                spread: 0.2,
            },
            (Task::Tile, _) => Self {
                slope: 0.076,
                spread: 0.5,
            },
            // The score is ln(seconds).
            (Task::Fusion, _) => Self {
                slope: 1.0,
                spread: 0.2,
            },
            (_, ScoreUnit::Seconds) => Self {
                slope: 1.0,
                spread: 0.5,
            },
            (_, ScoreUnit::None) => Self {
                slope: 0.05,
                spread: 0.5,
            },
        }
    }
}
