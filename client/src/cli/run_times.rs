use hlorank_client::quality::Outcome;
use hlorank_graph::{Configurations, LayoutBatch, LayoutEntry, Measurements};

/// Measured run times of configurations. One of 0, as in `TpuGraphs`' test files, is not measured.
#[derive(Debug)]
pub(crate) struct RunTimes<'a> {
    nanoseconds: &'a [i64],
    normalizers: Option<&'a [i64]>,
    default: Option<usize>,
    numbers: &'a [usize],
    skipped: usize,
}

impl<'a> RunTimes<'a> {
    /// `None` where nothing was measured.
    pub(crate) fn of(measurements: &'a Measurements) -> Option<Self> {
        let nanoseconds = measurements.run_times.as_slice();
        let default = measurements.default.or_else(|| default_layout(&measurements.configurations));
        let normalizers = measurements.normalizers.as_deref();
        nanoseconds.iter().any(|&time| time > 0).then_some(Self {
            nanoseconds,
            normalizers,
            default,
            numbers: &measurements.numbers,
            skipped: measurements.skipped,
        })
    }

    /// Number of a configuration in the file.
    pub(crate) fn number(&self, config: usize) -> usize {
        self.numbers[config]
    }

    /// Runs of the file that are left out.
    pub(crate) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Nanoseconds of a configuration.
    pub(crate) fn measured(&self, config: usize) -> Option<i64> {
        self.nanoseconds.get(config).copied().filter(|time| *time > 0)
    }

    /// How many were measured.
    pub(crate) fn len(&self) -> usize {
        self.nanoseconds.iter().filter(|time| **time > 0).count()
    }

    /// The fastest of these configurations, with its nanoseconds.
    pub(crate) fn fastest(&self, configs: impl IntoIterator<Item = usize>) -> Option<(usize, i64)> {
        let measured = configs.into_iter().filter_map(|config| Some((config, self.measured(config)?)));
        measured.min_by_key(|(_, time)| *time)
    }

    /// The fastest of all.
    pub(crate) fn best(&self) -> Option<(usize, i64)> {
        self.fastest(0..self.nanoseconds.len())
    }

    /// Nanoseconds of the compiler's default, where known.
    pub(crate) fn default(&self) -> Option<i64> {
        let normalizer = || self.normalizers.and_then(all_equal).filter(|time| *time > 0);
        self.default.and_then(|config| self.measured(config)).or_else(normalizer)
    }

    /// Run time over the default's.
    pub(crate) fn over_default(&self, config: usize) -> Option<f64> {
        let default = self.normalizer(config).or_else(|| self.default())?;
        Some(ratio(self.measured(config)?, default))
    }

    /// Run times, over their normalizers where there are some, with scores: of what was measured.
    pub(crate) fn outcomes(&self, scores: &[f32]) -> Vec<Outcome> {
        let outcome = |(config, &score): (usize, &f32)| {
            let run_time = ratio(self.measured(config)?, self.normalizer(config).unwrap_or(1));
            Some(Outcome { run_time, score: score.into() })
        };
        scores.iter().enumerate().filter_map(outcome).collect()
    }

    /// The default in the unit of [`RunTimes::outcomes`].
    pub(crate) fn default_outcome(&self) -> Option<f64> {
        if self.normalizers.is_some() { Some(1.0) } else { Some(ratio(self.default()?, 1)) }
    }

    fn normalizer(&self, config: usize) -> Option<i64> {
        self.normalizers?.get(config).copied().filter(|time| *time > 0)
    }
}

/// The layout that leaves everything to the compiler.
fn default_layout(configurations: &Configurations) -> Option<usize> {
    let Configurations::Layout(batch) = configurations else { return None };
    (0..batch.len()).find(|&config| is_default(batch, config))
}

fn is_default(batch: &LayoutBatch, config: usize) -> bool {
    (0..batch.slots()).all(|slot| batch.entry(config, slot) == LayoutEntry::DEFAULT)
}

fn all_equal(numbers: &[i64]) -> Option<i64> {
    let first = *numbers.first()?;
    numbers.iter().all(|number| *number == first).then_some(first)
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds stay far below 2^53")]
fn ratio(time: i64, unit: i64) -> f64 {
    time as f64 / unit as f64
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Limits, TileBatch, TileConfiguration};

    use super::*;

    fn kernel(run_times: &[i64], normalizers: Option<Vec<i64>>, default: Option<usize>) -> Measurements {
        let mut batch = TileBatch::default();
        let tile = TileConfiguration { kernel_bounds: &[], output_bounds: &[], input_bounds: &[] };
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
    fn times_of_zero_are_not_measured() {
        assert!(RunTimes::of(&kernel(&[0, 0], None, None)).is_none());
        let measurements = kernel(&[0, 30, 20], None, Some(1));
        let times = RunTimes::of(&measurements).unwrap();
        assert_eq!((times.len(), times.measured(0), times.best()), (2, None, Some((2, 20))));
        assert_eq!(times.outcomes(&[1.0, 2.0, 3.0]).len(), 2);
    }

    #[test]
    fn the_default_comes_from_its_run_or_the_normalizers() {
        let measurements = kernel(&[40, 20], None, Some(0));
        let times = RunTimes::of(&measurements).unwrap();
        assert_eq!((times.default(), times.over_default(1)), (Some(40), Some(0.5)));
        let measurements = kernel(&[40, 20], Some(vec![80, 80]), None);
        let times = RunTimes::of(&measurements).unwrap();
        assert_eq!((times.default(), times.over_default(1)), (Some(80), Some(0.25)));
        assert_eq!((times.outcomes(&[0.0, 0.0])[0].run_time, times.default_outcome()), (0.5, Some(1.0)));
        let measurements = kernel(&[40, 20], None, None);
        assert_eq!(RunTimes::of(&measurements).unwrap().default(), None);
    }
}
