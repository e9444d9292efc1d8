//! How well a model ranked lists of the validation data, by what is known of a list before anything is measured.

use std::sync::LazyLock;

use hlorank_adaptation::{ExpectedTau, statistics::deviation};
use hlorank_graph::Configurations;
use serde::Deserialize;

/// The file of an artifact with the lists.
pub(super) const CALIBRATION_FILE: &str = "calibration.json";

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

/// Lists of the validation data, of which those that are like another list say what to expect of it.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// `[traits, lists]` the spread and the columns of every list, in units in which distances count. A trait of all lists lies
    /// together, so that a processor compares several lists at a time.
    traits: Vec<f32>,
    /// `[traits]`
    scales: Vec<Scale>,
    /// `[lists]`
    taus: Vec<f64>,
}

/// How a trait of a list is compared with that of others.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// What the trait is multiplied with: how much it counts, over its deviation over the lists.
    factor: f64,
    /// The deviation.
    deviation: f64,
    lowest: f64,
    highest: f64,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CalibrationFile {
    lists: Vec<WrittenList>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenList {
    spread: f64,
    columns: Vec<f64>,
    tau: f64,
}

/// Number of scores of the shortest list of which something is expected.
const SHORTEST: usize = 3;

/// How much of a batch is looked at.
const SEEN_VALUES: usize = 2048;
const SEEN_CONFIGS: usize = 16;

/// Whole numbers below it have known logarithms.
const WHOLE: u16 = 4096;

/// Number of lists.
const LISTS: std::ops::RangeInclusive<usize> = 8..=4096;

/// Added to spreads, so that scores which are all equal have a logarithm.
const LEAST_SPREAD: f64 = 0.01;

/// Added to the deviations of traits, so that one that hardly varies does not decide alone.
const LEAST_SCALE: f64 = 0.1;

/// Share of the spread in the likeness of two lists. The columns have the rest.
const SPREAD_SHARE: f64 = 0.3;

/// Distance over which likeness falls. With the share of the spread, it was chosen on lists of tiles, among a few.
const BANDWIDTH: f64 = 0.4;

/// A squared distance beyond which lists are not alike at all: 36 squared bandwidths.
const FAR: f32 = 5.76;

/// How fast likeness falls with the deviations by which the traits of a list lie beyond those of all others: what no list of the
/// validation data had, such as a column that is always 0, comes from elsewhere. Chosen as the bandwidth was.
const BEYOND: f64 = 2.0;

/// Minimum deviation, since few lists may happen to have equal taus.
const LEAST_DEVIATION: f64 = 0.05;

/// Minimum sum of likeness: that of one list which is the same in all traits.
const LEAST_LIKENESS: f64 = 1.0;

impl SeenList {
    /// Sees the columns of some configurations that lie evenly over a batch, about 2,048 values of at most 16 configurations.
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

impl Calibration {
    /// Reads the file of a model whose configurations have this many columns, or says what is wrong with it.
    pub(super) fn read(bytes: &[u8], columns: usize) -> Result<Self, String> {
        let written = serde_json::from_slice(bytes);
        let CalibrationFile { lists } = written.map_err(|error| error.to_string())?;
        if !LISTS.contains(&lists.len()) {
            return Err(format!(
                "it has {} lists, expected {} to {}",
                lists.len(),
                LISTS.start(),
                LISTS.end()
            ));
        }
        let is_invalid = |list: &WrittenList| {
            list.columns.len() != columns || list.spread < 0.0 || list.tau.abs() > 1.0
        };
        if let Some(number) = lists.iter().position(is_invalid) {
            return Err(format!(
                "list {number} needs a spread of at least 0, a tau from -1 to 1, and {columns} columns, as configurations have"
            ));
        }
        let of_lists = lists.iter();
        let of_lists: Vec<Vec<f64>> = of_lists
            .map(|list| coordinates(list.spread, &list.columns))
            .collect();
        let mut traits = Vec::new();
        let mut scales = Vec::new();
        for place in 0..=columns {
            let values: Vec<f64> = of_lists.iter().map(|list| list[place]).collect();
            #[expect(clippy::cast_precision_loss, reason = "at most a thousand columns")]
            let share = match place {
                0 => SPREAD_SHARE,
                _ => (1.0 - SPREAD_SHARE) / columns as f64,
            };
            let deviation = deviation(&values) + LEAST_SCALE;
            let scale = Scale {
                // Differences are squared after they are scaled, hence the root.
                factor: share.sqrt() / deviation,
                deviation,
                lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
                highest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            };
            traits.extend(values.iter().map(|value| rounded(value * scale.factor)));
            scales.push(scale);
        }
        Ok(Self {
            traits,
            scales,
            taus: lists.iter().map(|list| list.tau).collect(),
        })
    }

    /// What is expected of the ranking of a list: what came of those that are like it; `None` if hardly any is.
    pub fn expected(&self, list: &ListTraits) -> Option<ExpectedTau> {
        let traits = coordinates(list.spread, &list.columns);
        let scaled = || traits.iter().zip(&self.scales);
        // By how many deviations the traits lie beyond those of all lists, together.
        let beyond = scaled().map(|(value, scale)| {
            let nearest = value.clamp(scale.lowest, scale.highest);
            (value - nearest).abs() / scale.deviation
        });
        let within = libm::exp(-BEYOND * beyond.sum::<f64>());
        let mut squared = vec![0.0; self.taus.len()];
        let of_lists = self.traits.chunks_exact(self.taus.len());
        for ((value, scale), of_lists) in scaled().zip(of_lists) {
            let own = rounded(value * scale.factor);
            for (squared, other) in squared.iter_mut().zip(of_lists) {
                *squared += (own - other) * (own - other);
            }
        }
        let weights: Vec<f64> = squared
            .into_iter()
            .map(|squared| {
                // The exponential is below 2e-8 beyond: thousands of such lists weigh nothing.
                let likeness = if squared > FAR {
                    0.0
                } else {
                    libm::exp(-f64::from(squared) / (2.0 * BANDWIDTH * BANDWIDTH))
                };
                within * likeness
            })
            .collect();
        let total: f64 = weights.iter().sum();
        if total < LEAST_LIKENESS {
            return None;
        }
        let weighted = || self.taus.iter().zip(&weights);
        let sum: f64 = weighted().map(|(tau, weight)| weight * tau).sum();
        let tau = sum / total;
        let deviations = weighted().map(|(other, weight)| weight * ((other - tau) * (other - tau)));
        let variance = deviations.sum::<f64>() / total;
        Some(ExpectedTau {
            tau,
            deviation: variance.sqrt().max(LEAST_DEVIATION),
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

fn coordinates(spread: f64, columns: &[f64]) -> Vec<f64> {
    // Spreads are compared by their ratio, which is a difference of logarithms.
    let spread = libm::log(spread + LEAST_SPREAD);
    std::iter::once(spread)
        .chain(columns.iter().copied())
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "distances of lists need a few digits"
)]
fn rounded(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Lists whose ranking is the better the wider scores spread, with tiles of about the same size.
    fn calibration() -> Calibration {
        let lists: Vec<_> = (0..40)
            .map(|number| {
                let spread = 0.2 * 1.1_f64.powi(number);
                let size = 3.0 + 0.2 * f64::from(number % 5);
                json!({"spread": spread, "columns": [size, 1.0], "tau": 0.02 * f64::from(number)})
            })
            .collect();
        Calibration::read(json!({ "lists": lists }).to_string().as_bytes(), 2).unwrap()
    }

    fn of(spread: f64, size: f64) -> Option<ExpectedTau> {
        let columns = vec![size, 1.0];
        calibration().expected(&ListTraits { spread, columns })
    }

    #[test]
    fn a_list_is_expected_to_be_ranked_as_those_that_are_like_it() {
        let [narrow, wide] = [of(0.25, 3.4), of(7.0, 3.4)].map(Option::unwrap);
        assert!(narrow.tau < 0.2 && wide.tau > 0.6, "{narrow:?} {wide:?}");
        assert!(wide.deviation < 0.2, "{wide:?}");
    }

    #[test]
    fn nothing_is_expected_of_a_list_that_is_unlike_all_others_or_lies_beyond_them() {
        // Sizes are 3.0 to 3.8.
        assert!(of(7.0, 3.8).is_some());
        assert_eq!([of(7.0, 9.0), of(7.0, 4.6)], [None; 2]);
    }

    #[test]
    fn a_broken_file_says_what_is_expected() {
        let list = json!({"spread": 1.0, "columns": [1.0], "tau": 0.5});
        let refusal = |lists: serde_json::Value| {
            let bytes = json!({ "lists": lists }).to_string();
            Calibration::read(bytes.as_bytes(), 1).unwrap_err()
        };
        assert!(refusal(json!([])).contains("it has 0 lists, expected 8 to 4096"));
        let mut lists = vec![list; 9];
        lists[3] = json!({"spread": 1.0, "columns": [1.0, 2.0], "tau": 0.5});
        let refused = refusal(json!(lists));
        assert!(
            refused.contains("list 3 needs") && refused.contains("1 columns"),
            "{refused}"
        );
        lists[3] = json!({"spread": 1.0, "columns": [1.0], "tau": 1.5});
        assert!(refusal(json!(lists)).contains("a tau from -1 to 1"));
        assert!(Calibration::read(b"lists", 1).is_err());
    }
}
