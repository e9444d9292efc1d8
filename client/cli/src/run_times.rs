use hlorank_client::quality::Outcome;
use hlorank_graph::Measurements;

use super::configuration::default_number;

/// Measured run times of configurations. A run time of 0, as in the test files of `TpuGraphs`, means not measured.
#[derive(Debug)]
pub(crate) struct RunTimes<'a> {
    nanoseconds: &'a [i64],
    normalizers: Option<&'a [i64]>,
    default: Option<usize>,
    numbers: &'a [usize],
    skipped: usize,
}

impl<'a> RunTimes<'a> {
    /// Returns the run times, or `None` if no configuration was measured.
    pub(crate) fn new(measurements: &'a Measurements) -> Option<Self> {
        let nanoseconds = measurements.run_times.as_slice();
        // Some formats name the default. In others, it is the layout that sets no node.
        let default = measurements
            .default
            .or_else(|| default_number(&measurements.configurations));
        let normalizers = measurements.normalizers.as_deref();
        nanoseconds.iter().any(|&time| time > 0).then_some(Self {
            nanoseconds,
            normalizers,
            default,
            numbers: &measurements.numbers,
            skipped: measurements.skipped,
        })
    }

    /// Returns the number of a configuration in the file.
    pub(crate) fn number(&self, config: usize) -> usize {
        self.numbers[config]
    }

    /// Returns the number of runs in the file that were left out.
    pub(crate) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns the run time of a configuration in nanoseconds.
    pub(crate) fn measured(&self, config: usize) -> Option<i64> {
        positive(self.nanoseconds, config)
    }

    /// Returns the number of measured configurations.
    pub(crate) fn len(&self) -> usize {
        self.nanoseconds.iter().filter(|time| **time > 0).count()
    }

    /// Returns the fastest of these configurations and its run time in nanoseconds.
    pub(crate) fn fastest(&self, configs: impl IntoIterator<Item = usize>) -> Option<(usize, i64)> {
        let measured = configs
            .into_iter()
            .filter_map(|config| Some((config, self.measured(config)?)));
        measured.min_by_key(|(_, time)| *time)
    }

    /// Returns the fastest of all configurations and its run time in nanoseconds.
    pub(crate) fn best(&self) -> Option<(usize, i64)> {
        self.fastest(0..self.nanoseconds.len())
    }

    /// Returns the number of the compiler's default in the order sent, if it is one of the configurations.
    pub(crate) fn default_config(&self) -> Option<usize> {
        self.default
    }

    /// Returns the run time of the compiler's default in nanoseconds, if known.
    pub(crate) fn default(&self) -> Option<i64> {
        // Equal normalizers are one run time of the default, even if its own run is not in the file.
        let normalizer = || {
            let all = self.normalizers?;
            let first = *all.first()?;
            (first > 0 && all.iter().all(|time| *time == first)).then_some(first)
        };
        self.default
            .and_then(|config| self.measured(config))
            .or_else(normalizer)
    }

    /// Returns the run time of a configuration divided by that of the default.
    pub(crate) fn over_default(&self, config: usize) -> Option<f64> {
        // Normalizers of one kernel can differ, because its configurations were measured in several
        // runs on several machines. Each configuration is comparable with its own normalizer only.
        let default = self.normalizer(config).or_else(|| self.default())?;
        Some(ratio(self.measured(config)?, default))
    }

    /// Returns run times and scores of the measured configurations. Run times are divided by the normalizers, if any.
    pub(crate) fn outcomes(&self, scores: &[f32]) -> Vec<Outcome> {
        let outcome = |(config, &score): (usize, &f32)| {
            let unit = match self.normalizers {
                // Without its own normalizer, a run time has another unit than the others.
                Some(_) => self.normalizer(config)?,
                None => 1,
            };
            Some(Outcome {
                run_time: ratio(self.measured(config)?, unit),
                score: score.into(),
            })
        };
        scores.iter().enumerate().filter_map(outcome).collect()
    }

    /// Returns the run time of the default in the unit of [`RunTimes::outcomes`].
    pub(crate) fn default_outcome(&self) -> Option<f64> {
        if self.normalizers.is_some() {
            // A normalizer is the run time of the default, and the quotient of equal times is 1.
            Some(1.0)
        } else {
            Some(ratio(self.default()?, 1))
        }
    }

    fn normalizer(&self, config: usize) -> Option<i64> {
        positive(self.normalizers?, config)
    }
}

fn positive(times: &[i64], config: usize) -> Option<i64> {
    times.get(config).copied().filter(|time| *time > 0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds stay far below 2^53"
)]
fn ratio(time: i64, unit: i64) -> f64 {
    time as f64 / unit as f64
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Configurations, Limits, TileBatch, TileConfiguration};

    use super::*;

    fn kernel(
        run_times: &[i64],
        normalizers: Option<Vec<i64>>,
        default: Option<usize>,
    ) -> Measurements {
        let mut batch = TileBatch::default();
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &[],
            input_bounds: &[],
        };
        for _ in run_times {
            batch.push(tile, &Limits::default()).unwrap();
        }
        let configurations = Configurations::Tile(batch);
        Measurements {
            configurations,
            numbers: (0..run_times.len()).collect(),
            run_times: run_times.to_vec(),
            normalizers,
            default,
            skipped: 0,
        }
    }

    #[test]
    fn a_run_time_of_zero_means_not_measured() {
        assert!(RunTimes::new(&kernel(&[0, 0], None, None)).is_none());
        let measurements = kernel(&[0, 30, 20], None, Some(1));
        let times = RunTimes::new(&measurements).unwrap();
        assert_eq!(
            (times.len(), times.measured(0), times.best()),
            (2, None, Some((2, 20)))
        );
        assert_eq!(times.outcomes(&[1.0, 2.0, 3.0]).len(), 2);
    }

    #[test]
    fn a_run_time_without_a_normalizer_is_not_compared_with_those_that_have_one() {
        let measurements = kernel(&[40, 20, 30], Some(vec![80, 0, 60]), None);
        let outcomes = RunTimes::new(&measurements)
            .unwrap()
            .outcomes(&[0.0, 0.0, 0.0]);
        let run_times: Vec<f64> = outcomes.iter().map(|outcome| outcome.run_time).collect();
        assert_eq!(run_times, [0.5, 0.5]);
    }

    #[test]
    fn the_default_comes_from_its_run_or_the_normalizers() {
        let measurements = kernel(&[40, 20], None, Some(0));
        let times = RunTimes::new(&measurements).unwrap();
        assert_eq!(
            (times.default(), times.over_default(1)),
            (Some(40), Some(0.5))
        );
        let measurements = kernel(&[40, 20], Some(vec![80, 80]), None);
        let times = RunTimes::new(&measurements).unwrap();
        assert_eq!(
            (times.default(), times.over_default(1)),
            (Some(80), Some(0.25))
        );
        assert_eq!(
            (
                times.outcomes(&[0.0, 0.0])[0].run_time,
                times.default_outcome()
            ),
            (0.5, Some(1.0))
        );
        let measurements = kernel(&[40, 20], None, None);
        assert_eq!(RunTimes::new(&measurements).unwrap().default(), None);
    }
}
