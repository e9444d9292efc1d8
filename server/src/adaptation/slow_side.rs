//! Brings the slow run times of a space closer together.
//!
//! In a space of parameters some configurations are a hundred times slower than others, and how slow a slow one is says little of
//! the fast ones. Above the median, ln(seconds) therefore counts by its logarithm in units of the spread below it, which makes a
//! smooth function of the rest easier to learn.

use super::Measurements;
use crate::statistics::mean;

/// How times above the median count.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowSide {
    /// The median of ln(seconds).
    middle: f64,
    /// About the deviation of those below it.
    unit: f64,
}

/// Least unit, since half of the times may be equal.
const MIN_UNIT: f64 = 0.05;

impl SlowSide {
    /// The slow side of measurements, of which there is at least one.
    pub(super) fn of(measurements: &Measurements) -> Self {
        let mut times = measurements.times.clone();
        times.sort_by(f64::total_cmp);
        let middle = times[times.len() / 2];
        let fast = &times[..=times.len() / 2];
        // The slow half is left out, because its largest squares would be nearly all of the sum.
        let squares = fast.iter().map(|time| (time - middle) * (time - middle));
        let variance = mean(&squares.collect::<Vec<_>>());
        Self {
            middle,
            unit: variance.sqrt().max(MIN_UNIT),
        }
    }

    pub(super) fn compressed(self, mut measurements: Measurements) -> Measurements {
        for time in &mut measurements.times {
            *time = self.compress(*time);
        }
        measurements
    }

    fn compress(self, time: f64) -> f64 {
        let over = (time - self.middle) / self.unit;
        if over > 0.0 {
            self.middle + self.unit * libm::log1p(over)
        } else {
            time
        }
    }

    /// The ln(seconds) that count as a number.
    pub(super) fn restore(self, time: f64) -> f64 {
        let over = (time - self.middle) / self.unit;
        if over > 0.0 {
            self.middle + self.unit * libm::expm1(over.min(MAX_OVER))
        } else {
            time
        }
    }
}

/// What is farther above the median is as good as infinitely slow.
const MAX_OVER: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_times_come_closer_and_are_restored() {
        let times = vec![0.0, 0.5, 1.0, 3.0, 6.0];
        let measurements = Measurements {
            times: times.clone(),
            ..Measurements::default()
        };
        let slow = SlowSide::of(&measurements);
        let compressed = slow.compressed(measurements).times;
        assert_eq!(compressed[..3], times[..3]);
        assert!(compressed[3] < 3.0 && compressed[4] < 4.0 && compressed.is_sorted());
        for (compressed, time) in compressed.iter().zip(&times) {
            assert!((slow.restore(*compressed) - time).abs() < 1e-12);
        }
        assert!(slow.restore(1e9).is_finite());
    }
}
