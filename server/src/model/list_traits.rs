//! What is known of a list of configurations before any of them is measured.

use std::sync::LazyLock;

use hlorank_graph::Configurations;

use crate::statistics::deviation;

/// What is known of a list of configurations of a graph before any is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ListTraits {
    /// Standard deviation of the model's scores.
    pub spread: f64,
    /// Mean of ln(1 + |x|) of each column of its configurations.
    pub columns: Vec<f64>,
}

/// What was seen of the configurations of a list until now.
#[derive(Clone, Debug, Default)]
pub struct SeenList {
    /// Sums over the slots and nodes of some configurations.
    columns: Vec<f64>,
    rows: f64,
}

/// Number of scores of the shortest list of which something is expected.
const SHORTEST: usize = 3;

/// How much of a batch is looked at.
const SEEN_VALUES: usize = 2048;
const SEEN_CONFIGS: usize = 16;

/// Whole numbers below it have known logarithms.
const WHOLE: u16 = 4096;

impl SeenList {
    /// Sees the columns of some configurations that lie evenly over a batch, about 2,048 values of at most 16 configurations.
    #[must_use]
    pub fn configurations(batch: &Configurations) -> Self {
        let mut seen = Self::default();
        if batch.is_empty() {
            return seen;
        }
        seen.columns = vec![0.0; batch.row_columns()];
        // All configurations of a batch have as many values as the first one, which decides how
        // many of them are seen: those of a large graph are expensive to sum up.
        let first = batch.feature_row(0);
        seen.add_rows(&first);
        let wanted = (SEEN_VALUES / first.len().max(1)).clamp(1, SEEN_CONFIGS);
        let step = batch.len().div_ceil(wanted);
        for config in (step..batch.len()).step_by(step) {
            seen.add_rows(&batch.feature_row(config));
        }
        seen
    }

    /// Adds the rows of a configuration.
    fn add_rows(&mut self, values: &[f32]) {
        for row in values.chunks_exact(self.columns.len()) {
            self.rows += 1.0;
            for (sum, &value) in self.columns.iter_mut().zip(row) {
                *sum += logarithm(value);
            }
        }
    }

    /// Adds what else was seen.
    pub fn add(&mut self, other: Self) {
        if self.columns.len() < other.columns.len() {
            self.columns.resize(other.columns.len(), 0.0);
        }
        for (sum, added) in self.columns.iter_mut().zip(other.columns) {
            *sum += added;
        }
        self.rows += other.rows;
    }

    /// What it says of the list, given the model's scores; `None` if it is too short to be ranked well or badly.
    #[must_use]
    pub fn traits(&self, scores: &[f32]) -> Option<ListTraits> {
        // One score that is not finite would spoil the spread.
        let finite = scores.iter().filter(|score| score.is_finite());
        let finite: Vec<f64> = finite.map(|&score| score.into()).collect();
        if self.rows < 1.0 || finite.len() < SHORTEST {
            return None;
        }
        Some(ListTraits {
            spread: deviation(&finite),
            columns: self.columns.iter().map(|sum| sum / self.rows).collect(),
        })
    }
}

/// ln(1 + |x|). Most columns have small whole numbers, whose logarithms are known.
fn logarithm(value: f32) -> f64 {
    static OF_WHOLE: LazyLock<Vec<f64>> =
        LazyLock::new(|| (0..WHOLE).map(|whole| libm::log1p(whole.into())).collect());
    let size = value.abs();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "compared with the number afterwards"
    )]
    let whole = size as u16;
    match OF_WHOLE.get(usize::from(whole)) {
        Some(known) if f32::from(whole) == size => *known,
        _ => libm::log1p(size.into()),
    }
}
