use std::collections::BTreeMap;

use hlorank_adaptation::statistics::{mean, scalar};

/// A measured configuration of a search.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    /// `[parameters]`
    pub(super) values: Vec<f32>,
    pub(super) seconds: f64,
    /// How many configurations of the search were seen until then.
    pub(super) place: usize,
}

/// Minimum number of measured configurations for parameters to be judged.
const MIN_TRIALS: usize = 10;

/// Number of parameters that are returned.
const SHOWN: usize = 4;

/// The smallest share that is returned.
const MIN_SHARE: f64 = 0.01;

/// Returns the parameters that explain most of the times, and the share of the variance of the logarithms of times that the values of
/// each explain: the epsilon squared of an analysis of variance, which does not grow with the number of values.
pub(super) fn important_parameters(names: &[String], trials: &[Trial]) -> Vec<(String, f64)> {
    if trials.len() < MIN_TRIALS {
        return Vec::new();
    }
    let logs: Vec<f64> = trials
        .iter()
        .map(|trial| libm::log(trial.seconds))
        .collect();
    let share = |(column, name): (usize, &String)| {
        let mut groups = BTreeMap::<u32, Vec<f64>>::new();
        for (trial, log) in trials.iter().zip(&logs) {
            groups
                .entry(trial.values[column].to_bits())
                .or_default()
                .push(*log);
        }
        let share = explained(&logs, groups.values());
        (share >= MIN_SHARE).then(|| (name.clone(), share))
    };
    let mut shares: Vec<_> = names.iter().enumerate().filter_map(share).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    shares.truncate(SHOWN);
    shares
}

/// The share of the variance of all numbers that lies between groups of them; 0 if nothing can be said.
fn explained<'a>(all: &[f64], groups: impl ExactSizeIterator<Item = &'a Vec<f64>>) -> f64 {
    let total = squares(all);
    let between_groups = scalar(groups.len().saturating_sub(1));
    let within_groups = scalar(all.len().saturating_sub(groups.len()));
    let within: f64 = groups.map(|group| squares(group)).sum();
    if total <= 0.0 || within_groups <= 0.0 {
        return 0.0;
    }
    ((total - within - between_groups * within / within_groups) / total).max(0.0)
}

/// The sum of the squared distances from the mean.
fn squares(numbers: &[f64]) -> f64 {
    let mean = mean(numbers);
    numbers
        .iter()
        .map(|number| (number - mean) * (number - mean))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(seconds: impl Fn(u8, u8) -> f64) -> Vec<Trial> {
        let pairs = (0..4_u8).flat_map(|one| (0..5_u8).map(move |other| (one, other)));
        let trial = |(one, other): (u8, u8)| Trial {
            values: vec![one.into(), other.into(), 7.0],
            seconds: seconds(one, other),
            place: 0,
        };
        pairs.map(trial).collect()
    }

    fn names() -> Vec<String> {
        ["tile", "warps", "constant"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_parameter_that_decides_comes_first_and_a_constant_one_is_left_out() {
        let trials =
            trials(|tile, warps| 1e-3 * (1.0 + f64::from(tile)) * (1.0 + 0.05 * f64::from(warps)));
        let important = important_parameters(&names(), &trials);
        assert_eq!(important[0].0, "tile");
        assert!(important[0].1 > 0.9, "{important:?}");
        assert!(
            important.iter().all(|(name, _)| name != "constant"),
            "{important:?}"
        );
    }

    #[test]
    fn a_parameter_without_influence_has_no_share_however_many_values_it_has() {
        // A pattern that neither column explains.
        let trials = trials(|tile, warps| {
            if (tile * 5 + warps) % 3 == 0 {
                2.0
            } else {
                1.0
            }
        });
        assert_eq!(important_parameters(&names(), &trials), []);
    }

    #[test]
    fn few_trials_and_equal_times_say_nothing() {
        let equal = trials(|_, _| 1.0);
        assert_eq!(important_parameters(&names(), &equal), []);
        let few = trials(|tile, _| 1.0 + f64::from(tile));
        assert_eq!(important_parameters(&names(), &few[..9]), []);
    }
}
