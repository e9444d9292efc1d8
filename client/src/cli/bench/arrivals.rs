//! The random times at which calls are due.

use std::time::Duration;

use fastrand::Rng;

/// Poisson arrivals: the gaps are independent and exponentially distributed. They depend only on the seed.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    random: Rng,
    rate: f64,
    seconds: f64,
}

impl Arrivals {
    /// Returns arrivals with a mean of `rate` per second.
    pub(super) fn new(rate: f64, seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            rate,
            seconds: 0.0,
        }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // The inverse of the exponential distribution. The number is above 0, so that its logarithm
        // is finite.
        let uniform = 1.0 - self.random.f64();
        self.seconds -= uniform.ln() / self.rate;
        // The sum of a very low rate exceeds what a duration can hold, which ends the arrivals.
        Duration::try_from_secs_f64(self.seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 250.0;
    const COUNT: u32 = 100_000;

    /// Returns the seconds between arrivals, and from 0 to the first.
    fn gaps(seed: u64) -> Vec<f64> {
        let times: Vec<f64> = Arrivals::new(RATE, seed)
            .take(COUNT as usize)
            .map(|at| at.as_secs_f64())
            .collect();
        let before = [0.0].into_iter().chain(times.iter().copied());
        times
            .iter()
            .zip(before)
            .map(|(at, before)| at - before)
            .collect()
    }

    #[test]
    fn gaps_are_distributed_exponentially() {
        let mut gaps = gaps(1);
        let (count, mean) = (
            f64::from(COUNT),
            gaps.iter().sum::<f64>() / f64::from(COUNT),
        );
        assert!((mean * RATE - 1.0).abs() < 0.01, "{mean}");
        gaps.sort_by(f64::total_cmp);
        let distance = (1..).zip(&gaps).map(|(rank, gap)| {
            let expected = 1.0 - (-gap * RATE).exp();
            (expected - f64::from(rank) / count).abs()
        });
        // The Kolmogorov-Smirnov test at 1 %.
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.63 / count.sqrt(), "{distance}");
    }

    #[test]
    fn gaps_are_not_correlated() {
        let gaps = gaps(2);
        let off = |gap: f64| gap * RATE - 1.0;
        let correlation: f64 = gaps
            .windows(2)
            .map(|pair| off(pair[0]) * off(pair[1]))
            .sum();
        let correlation = correlation / f64::from(COUNT);
        // Three standard deviations.
        assert!(
            correlation.abs() < 3.0 / f64::from(COUNT).sqrt(),
            "{correlation}"
        );
    }

    #[test]
    fn arrivals_depend_on_the_seed() {
        let times = |seed| Arrivals::new(RATE, seed).take(100).collect::<Vec<_>>();
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
    }
}
