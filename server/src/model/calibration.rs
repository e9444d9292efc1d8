//! How well a model ranked lists of the validation data, by what is known of a list before anything is measured.

use serde::Deserialize;

use super::list_traits::ListTraits;
use crate::statistics::deviation;

/// The file of an artifact with the lists.
pub(super) const CALIBRATION_FILE: &str = "calibration.json";

/// Kendall's tau of a ranking and of run times, as expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedTau {
    /// The mean.
    pub tau: f64,
    /// The standard deviation.
    pub deviation: f64,
}

/// Lists of the validation data. What is expected of a list is what came of those that are like it; of a list that is unlike all of
/// them, nothing.
#[derive(Clone, Debug)]
pub struct Calibration {
    lists: Vec<Known>,
    /// What the traits are divided by: their deviations over the lists.
    scales: Vec<f64>,
}

/// A list whose run times were measured.
#[derive(Clone, Debug)]
struct Known {
    /// The spread, then the columns, divided by the scales.
    traits: Vec<f64>,
    tau: f64,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    lists: Vec<WrittenList>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenList {
    spread: f64,
    columns: Vec<f64>,
    tau: f64,
}

/// Numbers of lists and columns.
const LISTS: std::ops::RangeInclusive<usize> = 8..=4096;
const COLUMNS: std::ops::RangeInclusive<usize> = 1..=1024;

/// Deviations around the mean between which four of five values lie.
const FOUR_OF_FIVE: f64 = 1.28;

/// Added to spreads, so that scores which are all equal have a logarithm.
const LEAST_SPREAD: f64 = 0.01;

/// Added to the deviations of traits, so that one that hardly varies does not decide alone.
const LEAST_SCALE: f64 = 0.1;

/// Share of the spread in the likeness of two lists. The columns have the rest.
const SPREAD_SHARE: f64 = 0.3;

/// Distance over which likeness falls. With the share of the spread, it was chosen on lists of tiles, among a few.
const BANDWIDTH: f64 = 0.4;

/// A distance beyond which lists are not alike at all, to stop adding columns up, and how many are added up between looking.
const FAR: f64 = 36.0 * BANDWIDTH * BANDWIDTH;
const PART: usize = 8;

/// How many like lists outweigh one of which nothing is known.
const UNKNOWN_WEIGHT: f64 = 0.3;

impl ExpectedTau {
    /// What is expected of a ranking of which nothing is known.
    pub const UNKNOWN: Self = Self {
        tau: 0.0,
        deviation: 0.3,
    };

    /// An interval that holds the tau of four of five lists.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        let half = FOUR_OF_FIVE * self.deviation;
        ((self.tau - half).max(-1.0), (self.tau + half).min(1.0))
    }
}

impl Calibration {
    /// Reads the file, or says what is wrong with it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let written = serde_json::from_slice(bytes);
        let Written { lists } = written.map_err(|error| error.to_string())?;
        if !LISTS.contains(&lists.len()) {
            return Err(format!(
                "it has {} lists, expected {} to {}",
                lists.len(),
                LISTS.start(),
                LISTS.end()
            ));
        }
        let columns = lists[0].columns.len();
        for (number, list) in lists.iter().enumerate() {
            let holds = COLUMNS.contains(&columns)
                && list.columns.len() == columns
                && list.spread >= 0.0
                && (-1.0..=1.0).contains(&list.tau);
            if !holds {
                return Err(format!(
                    "list {number} needs a spread of at least 0, a tau from -1 to 1, and as many columns as the first list, \
                     at most {}",
                    COLUMNS.end()
                ));
            }
        }
        Ok(Self::of(lists))
    }

    fn of(lists: Vec<WrittenList>) -> Self {
        let mut known: Vec<Known> = lists
            .into_iter()
            .map(|list| Known {
                traits: coordinates(list.spread, &list.columns),
                tau: list.tau,
            })
            .collect();
        let scale = |place: usize| {
            let values: Vec<f64> = known.iter().map(|list| list.traits[place]).collect();
            deviation(&values) + LEAST_SCALE
        };
        let scales: Vec<f64> = (0..known[0].traits.len()).map(scale).collect();
        for list in &mut known {
            divide(&mut list.traits, &scales);
        }
        Self {
            lists: known,
            scales,
        }
    }

    /// What is expected of the ranking of a list: the mean of those that are like it, and of one of which nothing is known.
    #[must_use]
    pub fn expected(&self, list: &ListTraits) -> ExpectedTau {
        let mut traits = coordinates(list.spread, &list.columns);
        if traits.len() != self.scales.len() {
            return ExpectedTau::UNKNOWN;
        }
        divide(&mut traits, &self.scales);
        let weights: Vec<f64> = self
            .lists
            .iter()
            .map(|known| likeness(&known.traits, &traits))
            .collect();
        let total = UNKNOWN_WEIGHT + weights.iter().sum::<f64>();
        let mean = |of: &dyn Fn(f64) -> f64, of_unknown: f64| {
            let sum: f64 = self
                .lists
                .iter()
                .zip(&weights)
                .map(|(known, weight)| weight * of(known.tau))
                .sum();
            (sum + UNKNOWN_WEIGHT * of_unknown) / total
        };
        let unknown = ExpectedTau::UNKNOWN;
        let tau = mean(&|tau| tau, unknown.tau);
        let square = |other: f64| (other - tau) * (other - tau);
        let of_unknown = square(unknown.tau) + unknown.deviation * unknown.deviation;
        let variance = mean(&square, of_unknown);
        ExpectedTau {
            tau,
            deviation: variance.sqrt(),
        }
    }
}

fn coordinates(spread: f64, columns: &[f64]) -> Vec<f64> {
    let spread = libm::log(spread + LEAST_SPREAD);
    std::iter::once(spread)
        .chain(columns.iter().copied())
        .collect()
}

fn divide(traits: &mut [f64], scales: &[f64]) {
    for (value, scale) in traits.iter_mut().zip(scales) {
        *value /= scale;
    }
}

/// How alike two lists are, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "at most a thousand columns")]
fn likeness(one: &[f64], other: &[f64]) -> f64 {
    let square = |(one, other): (&f64, &f64)| (one - other) * (one - other);
    let weight = (1.0 - SPREAD_SHARE) / (one.len() - 1) as f64;
    let mut distance = SPREAD_SHARE * square((&one[0], &other[0]));
    let parts = one[1..].chunks(PART).zip(other[1..].chunks(PART));
    for (one, other) in parts {
        if distance > FAR {
            return 0.0;
        }
        distance += weight * one.iter().zip(other).map(square).sum::<f64>();
    }
    libm::exp(-distance / (2.0 * BANDWIDTH * BANDWIDTH))
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
        Calibration::read(json!({ "lists": lists }).to_string().as_bytes()).unwrap()
    }

    fn of(spread: f64, size: f64) -> ExpectedTau {
        let columns = vec![size, 1.0];
        calibration().expected(&ListTraits { spread, columns })
    }

    #[test]
    fn a_list_is_expected_to_be_ranked_as_those_that_are_like_it() {
        let [narrow, wide] = [of(0.25, 3.4), of(7.0, 3.4)];
        assert!(narrow.tau < 0.2 && wide.tau > 0.6, "{narrow:?} {wide:?}");
        assert!(wide.deviation < 0.2, "{wide:?}");
    }

    #[test]
    fn nothing_is_expected_of_a_list_that_is_unlike_all_others() {
        let unlike = of(7.0, 9.0);
        assert!(
            unlike.tau.abs() < 0.01 && unlike.deviation > 0.29,
            "{unlike:?}"
        );
        let columns = vec![3.4];
        let other = ListTraits {
            spread: 7.0,
            columns,
        };
        assert_eq!(calibration().expected(&other), ExpectedTau::UNKNOWN);
    }

    #[test]
    fn a_broken_file_says_what_is_expected() {
        let list = json!({"spread": 1.0, "columns": [1.0], "tau": 0.5});
        let refusal = |lists: serde_json::Value| {
            let bytes = json!({ "lists": lists }).to_string();
            Calibration::read(bytes.as_bytes()).unwrap_err()
        };
        assert!(refusal(json!([])).contains("it has 0 lists, expected 8 to 4096"));
        let mut lists = vec![list; 9];
        lists[3] = json!({"spread": 1.0, "columns": [1.0, 2.0], "tau": 0.5});
        assert!(refusal(json!(lists)).contains("list 3 needs"));
        lists[3] = json!({"spread": 1.0, "columns": [1.0], "tau": 1.5});
        assert!(refusal(json!(lists)).contains("a tau from -1 to 1"));
        assert!(Calibration::read(b"lists").is_err());
    }
}
