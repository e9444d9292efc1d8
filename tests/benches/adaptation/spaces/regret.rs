//! How much slower than the fastest a search's best is.

use super::space::Space;

/// Numbers of measurements after which a search is judged.
pub(super) const STEPS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];
/// The regret of a search that has found nothing that runs: its best counts 100 times.
const MOST: f64 = 99.0;

/// Regret after each of [`STEPS`] up to the length of the search: the best time that was found over the best there is,
/// minus 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Regrets(Vec<f64>);

impl Regrets {
    pub(super) fn new(space: &Space, measured: &[usize]) -> Self {
        let fastest = |of: &mut dyn Iterator<Item = f64>| of.fold(f64::INFINITY, f64::min);
        let best = fastest(&mut space.seconds.iter().copied());
        let after = |&step: &usize| {
            let first = &measured[..step];
            let found = fastest(&mut first.iter().map(|&config| space.seconds[config]));
            (found / best - 1.0).min(MOST)
        };
        let steps = STEPS.iter().filter(|&&step| step <= measured.len());
        Self(steps.map(after).collect())
    }

    /// Returns the geometric mean of how many times slower than the best, minus 1.
    pub(super) fn mean(all: &[Self]) -> Self {
        let steps = all.iter().map(|regrets| regrets.0.len()).min();
        let mean = |step: usize| {
            let logs = all.iter().map(|regrets| regrets.0[step].ln_1p());
            (logs.sum::<f64>() / all.len() as f64).exp_m1()
        };
        Self((0..steps.unwrap_or(0)).map(mean).collect())
    }

    /// Returns the regret after one of [`STEPS`], if the search was so long.
    pub(super) fn after(&self, measurements: usize) -> Option<f64> {
        let place = STEPS.iter().position(|&step| step == measurements)?;
        self.0.get(place).copied()
    }

    /// Returns cells of a table, in percent.
    pub(super) fn cells(&self) -> String {
        let cells = self.0.iter().map(|regret| {
            let places = usize::from(*regret < 0.1);
            format!("{:.places$}", 100.0 * regret)
        });
        cells.collect::<Vec<_>>().join(" | ")
    }
}
