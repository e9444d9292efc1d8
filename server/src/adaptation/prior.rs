pub(crate) use crate::model::Prior;

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
    pub(super) fn numbers(self) -> [f64; 3] {
        [self.slope, self.spread, self.doubt]
    }
}
