use std::iter::zip;

use hlorank_graph::Digest;

use super::{Point, Prior};
use crate::{
    split_mix::mix,
    statistics::{deviation, mean, tau},
};

/// A measured configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The configuration.
    pub point: Point,
    /// Its run time; `None` if it failed.
    pub seconds: Option<f64>,
    /// Number of runs that the time is the mean of.
    pub repeats: u32,
}

/// The measurements of a graph, sorted, each configuration once.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// Configurations that have a time.
    pub(super) points: Vec<Point>,
    /// `[points]` mean ln(seconds).
    pub(super) times: Vec<f64>,
    /// `[points]` number of runs.
    pub(super) counts: Vec<f64>,
    /// Configurations that only ever failed.
    pub(super) failed: Vec<Point>,
    /// `[points]` and `[failed]` whether the call's client measured each, rather than others.
    pub(super) own: [Vec<bool>; 2],
}

/// How slow run times of a space are brought closer together.
///
/// In a space of parameters some configurations are a hundred times slower than others, and how slow a slow one is says little of
/// the fast ones. Above the median, ln(seconds) therefore counts by its logarithm in units of the spread below it, which makes a
/// smooth function of the rest easier to learn.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowSide {
    /// The median of ln(seconds).
    middle: f64,
    /// About the deviation of those below it.
    unit: f64,
}

/// Least unit, since half of the times may be equal.
const MIN_UNIT: f64 = 0.05;

/// What is farther above the median, in units, is as good as infinitely slow.
const MAX_OVER: f64 = 6.0;

/// By how many deviations of ln(seconds) a failure counts as slower than the slowest run.
const SLOWER: f64 = 0.2;

impl Measurements {
    /// Sorts measurements, and combines those of one configuration.
    pub fn new(mut measured: Vec<Measurement>) -> Self {
        // The order is total, so that sums have the same bits in whatever order reports came in.
        let key = |each: &Measurement| (each.seconds.map(f64::to_bits), each.repeats);
        measured.sort_unstable_by(|one, other| {
            let points = one.point.compare(&other.point);
            points.then_with(|| key(one).cmp(&key(other)))
        });
        let mut all = Self::default();
        for same in measured.chunk_by(|one, other| one.point == other.point) {
            let mut sum = 0.0;
            let mut count = 0.0;
            for each in same {
                if let Some(seconds) = each.seconds {
                    sum += f64::from(each.repeats) * libm::log(seconds);
                    count += f64::from(each.repeats);
                }
            }
            let point = same[0].point.clone();
            // A configuration that succeeded once has a time, however often it failed.
            if count == 0.0 {
                all.failed.push(point);
            } else {
                all.points.push(point);
                all.times.push(sum / count);
                all.counts.push(count);
            }
        }
        all.own = [all.points.len(), all.failed.len()].map(|count| vec![true; count]);
        all
    }

    /// Adds what others measured of configurations that are not among these, which are the client's own. It counts as one run of each,
    /// however often they were measured, so that nobody makes a wrong time certain by repeating it.
    #[must_use]
    pub fn completed_by(mut self, others: Self) -> Self {
        if others.distinct() == 0 {
            return self;
        }
        let known = |points: &[Point], point: &Point| {
            let found = points.binary_search_by(|known| known.compare(point));
            found.is_ok()
        };
        let is_new = |point: &Point| !known(&self.points, point) && !known(&self.failed, point);
        let failed: Vec<Point> = others.failed.into_iter().filter(is_new).collect();
        let timed = zip(others.points, others.times).filter(|(point, _)| is_new(point));
        let mut all: Vec<_> = timed
            .map(|(point, time)| (point, time, 1.0, false))
            .collect();
        let own = zip(zip(self.points, self.times), self.counts);
        all.extend(own.map(|((point, time), count)| (point, time, count, true)));
        all.sort_unstable_by(|(one, ..), (other, ..)| one.compare(other));
        (self.points, self.times, self.counts, self.own[0]) = all.into_iter().collect();
        self.own[1].extend(vec![false; failed.len()]);
        self.failed.extend(failed);
        self
    }

    /// Keeps at most `count` configurations that have a time: the client's own before those of others, and of either the fastest
    /// half, and of the rest those that a fixed draw by configuration gives.
    #[must_use]
    pub fn at_most(mut self, count: usize) -> Self {
        if self.measured() <= count {
            return self;
        }
        let all = 0..self.measured();
        let (own, others): (Vec<usize>, Vec<usize>) = all.partition(|&place| self.own[0][place]);
        let mut places = self.some_of(own, count);
        let left = count - places.len();
        places.extend(self.some_of(others, left));
        places.sort_unstable();
        let kept = places.into_iter().map(|place| {
            let point = self.points[place].clone();
            (
                point,
                self.times[place],
                self.counts[place],
                self.own[0][place],
            )
        });
        (self.points, self.times, self.counts, self.own[0]) = kept.collect();
        self
    }

    /// At most `count` of some places.
    fn some_of(&self, mut places: Vec<usize>, count: usize) -> Vec<usize> {
        if places.len() > count {
            places.sort_by(|&one, &other| self.times[one].total_cmp(&self.times[other]));
            // The fastest are what a search is about, and the others say how the rest of the space
            // looks. The draw depends on the configuration alone.
            places[count / 2..].sort_by_cached_key(|&place| {
                let values = self.points[place].configuration();
                values.fold(0, |state, value| mix(state ^ value))
            });
            places.truncate(count);
        }
        places
    }

    /// Returns the same with a time for each configuration that failed: one that is a little longer than the slowest.
    pub(super) fn with_failures_slow(mut self) -> Self {
        if self.failed.is_empty() {
            return self;
        }
        let slowest = self.times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let time = slowest + SLOWER * deviation(&self.times);
        let failed = self.failed.len();
        self.points.extend(self.failed.iter().cloned());
        self.times.extend(vec![time; failed]);
        self.counts.extend(vec![1.0; failed]);
        let [own, own_failed] = &mut self.own;
        own.extend_from_slice(own_failed);
        self
    }

    /// `[points]` ln(seconds) without what scores explain, given how much it rises per unit of
    /// score.
    pub(super) fn beside_scores(&self, slope: f64) -> Vec<f64> {
        zip(&self.points, &self.times)
            .map(|(point, time)| time - slope * point.score)
            .collect()
    }

    /// Number of configurations that have a time.
    pub fn measured(&self) -> usize {
        self.times.len()
    }

    /// Number of configurations that have a time or failed.
    pub fn distinct(&self) -> usize {
        self.times.len() + self.failed.len()
    }

    /// Kendall's tau of the times and the scores.
    pub(super) fn tau_of_scores(&self) -> f64 {
        let scores: Vec<f64> = self.points.iter().map(|point| point.score).collect();
        tau(&self.times, &scores)
    }

    /// The lowest ln(seconds).
    pub(super) fn fastest(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Whether the model tells configurations apart.
    pub(super) fn scores_differ(&self) -> bool {
        let differs = |point: &Point| point.score.to_bits() != self.points[0].score.to_bits();
        self.points.iter().any(differs)
    }

    /// Whether there is something to learn: at least three configurations, with times that differ.
    pub(super) fn teach(&self) -> bool {
        self.times.len() >= 3 && self.times.iter().any(|time| *time != self.times[0])
    }

    /// Identifies all that learning from them depends on.
    pub fn digest(&self, prior: Prior) -> Digest {
        // The patterns have no `..`, so that a new field does not compile until it is part of the digest.
        let Self {
            points,
            times,
            counts,
            failed,
            own,
        } = self;
        let Prior {
            slope,
            spread,
            doubt,
        } = prior;
        let bytes = |values: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
            values.flat_map(u64::to_le_bytes).collect()
        };
        let numbers = |values: &[f64]| bytes(&mut values.iter().map(|value| value.to_bits()));
        let mut parts = vec![
            numbers(&[slope, spread, doubt]),
            numbers(times),
            numbers(counts),
        ];
        let own = own.iter();
        parts.extend(own.map(|own| own.iter().map(|&is_own| is_own.into()).collect()));
        // The number of times says where the points with a time end and those that failed begin. There is a digest of each point,
        // because the bytes of all would be the dense form of a batch.
        parts.extend(points.iter().chain(failed).map(|point| {
            let score = [point.score.to_bits()];
            let bytes = bytes(&mut point.configuration().chain(score));
            let digest = Digest::of_parts("hlorank 2026 a point", [bytes.as_slice()]);
            digest.0.to_vec()
        }));
        let parts = parts.iter().map(Vec::as_slice);
        Digest::of_parts("hlorank 2026 measurements that teach", parts)
    }
}

impl SlowSide {
    /// Compresses the slow side of some ln(seconds), of which there is at least one.
    pub(super) fn compress(times: &mut [f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted[times.len() / 2];
        // The slow half is left out, because its largest squares would be nearly all of the sum.
        let fast = sorted[..=times.len() / 2].iter();
        let squares: Vec<f64> = fast.map(|time| (time - middle) * (time - middle)).collect();
        let unit = mean(&squares).sqrt().max(MIN_UNIT);
        for time in times {
            let over = (*time - middle) / unit;
            if over > 0.0 {
                *time = middle + unit * libm::log1p(over);
            }
        }
        Self { middle, unit }
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

#[cfg(test)]
impl Measurement {
    /// A time that was measured once.
    pub(super) fn of_time(point: Point, seconds: f64) -> Self {
        Self {
            point,
            seconds: Some(seconds),
            repeats: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(bound: f64, seconds: impl Into<Option<f64>>, repeats: u32) -> Measurement {
        Measurement {
            point: Point::of_bounds(&[bound]),
            seconds: seconds.into(),
            repeats,
        }
    }

    #[test]
    fn measurements_of_one_configuration_are_combined_by_their_repeats() {
        let all = Measurements::new(vec![
            measured(2.0, 1.0, 3),
            measured(1.0, 5.0, 1),
            measured(2.0, 16.0, 1),
        ]);
        assert_eq!(all.times, [libm::log(5.0), libm::log(16.0) / 4.0]);
        assert_eq!(all.counts, [1.0, 4.0]);
    }

    #[test]
    fn scores_differ_if_any_is_another() {
        let scored = |scores: [f64; 3]| {
            let each = |(bound, score): (f64, f64)| {
                let mut measured = measured(bound, 1.0, 1);
                measured.point.score = score;
                measured
            };
            let bounds = [1.0, 2.0, 3.0].into_iter();
            Measurements::new(bounds.zip(scores).map(each).collect())
        };
        assert!(!scored([0.5, 0.5, 0.5]).scores_differ());
        assert!(scored([0.5, 0.5, 0.6]).scores_differ());
    }

    #[test]
    fn a_failure_counts_if_there_is_no_time() {
        let all = Measurements::new(vec![
            measured(1.0, None, 1),
            measured(2.0, None, 1),
            measured(1.0, 2.0, 1),
        ]);
        assert_eq!((all.points.len(), all.failed.len()), (1, 1));
        assert_eq!(*all.failed[0].bounds, [2.0]);
    }

    #[test]
    fn a_failure_may_count_as_slow() {
        let all = Measurements::new(vec![
            measured(1.0, None, 1),
            measured(2.0, 1.0, 1),
            measured(3.0, 2.0, 1),
        ]);
        let slow = all.with_failures_slow();
        assert_eq!((slow.times.len(), slow.points[2].bounds[0]), (3, 1.0));
        assert!(slow.times[2] > libm::log(2.0) && slow.times[2] < libm::log(2.5));
    }

    #[test]
    fn the_fastest_half_and_a_draw_of_the_others_are_kept() {
        let all = || (1..=100_u32).map(|number| measured(f64::from(number), f64::from(number), 1));
        let kept = Measurements::new(all().collect()).at_most(20);
        assert_eq!(kept.times.len(), 20);
        let bound = |number: usize| kept.points[number].bounds[0];
        assert_eq!((bound(9), kept.times[9]), (10.0, libm::log(10.0)));
        assert!(
            bound(10) > 11.0 || bound(19) > 30.0,
            "others than the next fastest"
        );
        let again = Measurements::new(all().rev().collect()).at_most(20);
        assert_eq!((again.points, again.times), (kept.points, kept.times));
        assert_eq!(
            Measurements::new(all().collect()).at_most(100).times.len(),
            100
        );
    }

    #[test]
    fn own_measurements_take_the_place_of_those_of_others_and_come_first() {
        let own = || {
            Measurements::new(vec![
                measured(3.0, 1.0, 5),
                measured(1.0, 8.0, 1),
                measured(4.0, None, 1),
            ])
        };
        let others = (1..=100_u32).map(|number| measured(f64::from(number), 0.5, 1_000));
        let others = Measurements::new(others.collect());
        let all = own().completed_by(others);
        let bounds: Vec<f64> = all.points.iter().map(|point| point.bounds[0]).collect();
        assert_eq!(bounds[..4], [1.0, 2.0, 3.0, 5.0], "4 failed");
        assert_eq!(all.times[..3], [libm::log(8.0), libm::log(0.5), 0.0]);
        assert_eq!(all.counts[..3], [1.0, 1.0, 5.0], "others count once");
        assert_eq!(all.failed.len(), 1);
        let some = all.at_most(10);
        assert_eq!(some.measured(), 10);
        assert_eq!(some.own[0].iter().filter(|is_own| **is_own).count(), 2);
        let alone = own().completed_by(Measurements::default());
        assert_eq!(alone.times, own().times);
    }

    #[test]
    fn three_times_that_differ_teach() {
        let times = |times: &[f64]| {
            let all = times
                .iter()
                .zip([1.0, 2.0, 3.0])
                .map(|(&time, bound)| measured(bound, time, 1));
            Measurements::new(all.collect()).teach()
        };
        assert!(times(&[1.0, 1.0, 2.0]));
        assert!(!times(&[1.0, 1.0, 1.0]) && !times(&[1.0, 2.0]));
    }

    #[test]
    fn only_slow_times_come_closer_and_are_restored() {
        let times = [0.0, 0.5, 1.0, 3.0, 6.0];
        let mut compressed = times;
        let slow = SlowSide::compress(&mut compressed);
        assert_eq!(compressed[..3], times[..3]);
        assert!(compressed[3] < 3.0 && compressed[4] < 4.0 && compressed.is_sorted());
        for (compressed, time) in compressed.iter().zip(&times) {
            assert!((slow.restore(*compressed) - time).abs() < 1e-12);
        }
        assert!(slow.restore(1e9).is_finite());
    }
}
