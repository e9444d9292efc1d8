//! Boosted trees: a sum of small trees, each of which learns what those before it left over (Friedman, 2001).
//!
//! All nodes of one depth of a tree ask the same question, so that a tree is a table with one bit of its index for each
//! question (Prokhorenkova et al., 2018). Such trees are quick to evaluate and hard to overfit.

use hlorank_graph::pace;

use super::Point;
use crate::split_mix::mix;

/// What predicts a number from some features.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    /// What questions are asked of.
    features: Vec<Feature>,
    trees: Vec<Tree>,
}

/// A feature that differs among the examples.
#[derive(Clone, Debug)]
struct Feature {
    /// Its place in a row.
    place: usize,
    /// Ascending.
    thresholds: Vec<f64>,
}

/// Points, and the number that belongs to each.
#[derive(Clone, Debug, Default)]
pub(super) struct Examples {
    /// `[rows]` all with the same number of features.
    pub(super) points: Vec<Point>,
    pub(super) targets: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Tree {
    questions: Vec<Question>,
    /// `[2^questions]` what each combination of answers adds.
    leaves: Vec<f64>,
}

/// Whether a feature is larger than one of its thresholds.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Number among the features.
    feature: usize,
    /// Number of the threshold.
    threshold: u8,
}

/// A feature as numbers of the intervals between its thresholds.
struct BinnedFeature {
    feature: Feature,
    /// `[rows]` number of thresholds below each value.
    bins: Vec<u8>,
}

/// What the trees before left over, and the rows that a tree learns from.
struct Sample<'a> {
    /// `[rows]`
    left: &'a [f64],
    /// `[rows]`
    is_drawn: &'a [bool],
}

/// Sum and number of what is left over.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    count: f64,
}

/// Maximum number of questions of a tree.
const DEPTH: usize = 6;

/// Maximum number of thresholds of a feature.
const THRESHOLDS: usize = 48;

/// Maximum number of features, since learning takes time with their number.
const MAX_FEATURES: usize = 64;

/// What a tree adds of what its leaves found.
const RATE: f64 = 0.1;

/// Number of examples of 0 that every leaf has beside its own.
const SHRINKAGE: f64 = 1.0;

/// The share of rows and of features that a tree learns from, of 256.
const SHARE: u64 = 205;

impl Trees {
    /// Learns in this number of rounds.
    pub(super) fn new(examples: &Examples, rounds: usize) -> Self {
        let features = telling_features(examples);
        let mut left = examples.targets.clone();
        let mut trees = Vec::new();
        for round in pace::in_steps(1, 0..rounds) {
            let seed = mix(round as u64);
            // Each tree learns from other rows and features, so that their errors differ and cancel
            // out.
            let sample = Sample {
                left: &left,
                is_drawn: &(0..left.len())
                    .map(|row| is_drawn(seed, row))
                    .collect::<Vec<_>>(),
            };
            let (tree, leaf_of) = Tree::new(&features, &sample, mix(seed));
            for (left, leaf) in left.iter_mut().zip(leaf_of) {
                *left -= tree.leaves[leaf];
            }
            trees.push(tree);
        }
        Self {
            features: features.into_iter().map(|each| each.feature).collect(),
            trees,
        }
    }

    /// `[rows]` the number that is predicted for each point.
    pub(super) fn predict(&self, rows: &[Point]) -> Vec<f64> {
        let features = pace::in_steps(1, &self.features);
        let bins: Vec<Vec<u8>> = features.map(|feature| feature.bins(rows)).collect();
        let mut sums = vec![0.0; rows.len()];
        for tree in pace::in_steps(1, &self.trees) {
            let mut leaf_of = vec![0_u8; rows.len()];
            for question in &tree.questions {
                for (leaf, &bin) in leaf_of.iter_mut().zip(&bins[question.feature]) {
                    *leaf = 2 * *leaf + u8::from(bin > question.threshold);
                }
            }
            for (sum, leaf) in sums.iter_mut().zip(leaf_of) {
                *sum += tree.leaves[usize::from(leaf)];
            }
        }
        sums
    }
}

impl Tree {
    /// Returns a tree of what is left over, about the features that a draw takes, and the leaf of each row.
    fn new(features: &[BinnedFeature], sample: &Sample<'_>, seed: u64) -> (Self, Vec<usize>) {
        let mut leaf_of = vec![0; sample.left.len()];
        let mut questions = Vec::new();
        for depth in 0..DEPTH {
            let drawn = features.iter().enumerate();
            let drawn = drawn.filter(|(_, each)| is_drawn(seed, each.feature.place));
            let best = drawn.filter_map(|(feature, each)| {
                let (threshold, gain) = each.best_threshold(sample, &leaf_of, 1 << depth)?;
                Some((Question { feature, threshold }, gain))
            });
            // A tree ends where no drawn feature has a threshold.
            let Some((question, _)) = best.max_by(|(_, one), (_, other)| one.total_cmp(other))
            else {
                break;
            };
            let bins = &features[question.feature].bins;
            for (leaf, &bin) in leaf_of.iter_mut().zip(bins) {
                *leaf = 2 * *leaf + usize::from(bin > question.threshold);
            }
            questions.push(question);
        }
        let sums = sample.sums(1 << questions.len(), leaf_of.iter().copied());
        let leaves = sums.iter().map(|sum| RATE * sum.mean()).collect();
        (Self { questions, leaves }, leaf_of)
    }
}

impl Feature {
    /// A feature of rows, without thresholds if it does not differ among them.
    fn new(place: usize, rows: &[Point]) -> Self {
        let mut values: Vec<f64> = rows.iter().map(|row| row.feature(place)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let pairs = values.windows(2);
        let between = pairs.map(|pair| f64::midpoint(pair[0], pair[1]));
        let between: Vec<f64> = between.collect();
        // Thresholds lie evenly among the distinct values, which may differ by orders of magnitude.
        let step = between.len().div_ceil(THRESHOLDS).max(1);
        let thresholds = between.into_iter().skip(step / 2).step_by(step).collect();
        Self { place, thresholds }
    }

    /// `[rows]` number of thresholds below each value.
    fn bins(&self, rows: &[Point]) -> Vec<u8> {
        let below = |row: &Point| {
            let value = row.feature(self.place);
            self.thresholds
                .partition_point(|threshold| *threshold < value)
        };
        let bin = |row| u8::try_from(below(row)).unwrap_or(u8::MAX);
        rows.iter().map(bin).collect()
    }
}

/// The features that differ. If there are too many, those are left out that tell least of the targets by themselves.
fn telling_features(Examples { points, targets }: &Examples) -> Vec<BinnedFeature> {
    let root = vec![0; targets.len()];
    let all = Sample {
        left: targets,
        is_drawn: &vec![true; targets.len()],
    };
    let mut kept: Vec<(f64, BinnedFeature)> = Vec::new();
    let leave_out = |kept: &mut Vec<(f64, BinnedFeature)>| {
        kept.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        kept.truncate(MAX_FEATURES);
    };
    for place in pace::in_steps(1, 0..points.first().map_or(0, Point::features)) {
        let feature = Feature::new(place, points);
        if feature.thresholds.is_empty() {
            continue;
        }
        let binned = BinnedFeature {
            bins: feature.bins(points),
            feature,
        };
        let best = binned.best_threshold(&all, &root, 1);
        kept.push((best.map_or(0.0, |(_, gain)| gain), binned));
        // Few are there at a time, because a point can have more features than the points of a call have bytes.
        if kept.len() == 2 * MAX_FEATURES {
            leave_out(&mut kept);
        }
    }
    leave_out(&mut kept);
    let mut kept: Vec<BinnedFeature> = kept.into_iter().map(|(_, each)| each).collect();
    kept.sort_by_key(|each| each.feature.place);
    kept
}

impl BinnedFeature {
    /// Returns the number of the threshold that divides the leaves best, and by how much; nothing if there is none.
    fn best_threshold(
        &self,
        sample: &Sample<'_>,
        leaf_of: &[usize],
        leaves: usize,
    ) -> Option<(u8, f64)> {
        let bins = self.feature.thresholds.len() + 1;
        let rows = leaf_of.iter().zip(&self.bins);
        let bin_of = rows.map(|(&leaf, &bin)| leaf * bins + usize::from(bin));
        let sums = sample.sums(leaves * bins, bin_of);
        // What each threshold explains of what is left over in the leaves.
        let mut gains = vec![0.0; bins - 1];
        for of_leaf in sums.chunks_exact(bins) {
            let mut all = Sum::default();
            for bin in of_leaf {
                all.add(*bin);
            }
            let mut below = Sum::default();
            // What is above a threshold is all but what is below, so that one pass serves every threshold.
            for (gain, bin) in gains.iter_mut().zip(of_leaf) {
                below.add(*bin);
                let above = Sum {
                    total: all.total - below.total,
                    count: all.count - below.count,
                };
                *gain += below.explained() + above.explained();
            }
        }
        let gains = (0..).zip(gains);
        gains.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

impl Sample<'_> {
    /// Returns this many sums over the drawn rows, given the number of each row's sum.
    fn sums(&self, count: usize, sum_of: impl Iterator<Item = usize>) -> Vec<Sum> {
        let mut sums = vec![Sum::default(); count];
        for ((number, &left), &is_drawn) in sum_of.zip(self.left).zip(self.is_drawn) {
            if is_drawn {
                sums[number].add(Sum {
                    total: left,
                    count: 1.0,
                });
            }
        }
        sums
    }
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.count += other.count;
    }

    fn mean(&self) -> f64 {
        self.total / (self.count + SHRINKAGE)
    }

    /// By how much the mean lowers the sum of squares.
    fn explained(&self) -> f64 {
        self.total * self.mean()
    }
}

/// Whether a fixed draw takes a number.
fn is_drawn(seed: u64, number: usize) -> bool {
    mix(seed ^ mix(number as u64)) % 256 < SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(features: &[f64]) -> Point {
        Point {
            bounds: features.into(),
            ..Point::default()
        }
    }

    fn examples(rows: impl Iterator<Item = u32>) -> Examples {
        let features = |row: u32| [row % 8, row / 8 % 8, row * 5 % 7].map(f64::from);
        let points: Vec<Point> = rows.map(|row| point(&features(row))).collect();
        let target = |point: &Point| {
            let row = &point.bounds;
            let corner = if row[0] > 3.0 && row[1] > 3.0 {
                3.0
            } else {
                0.0
            };
            row[0] / 2.0 - corner
        };
        let targets = points.iter().map(target).collect();
        Examples { points, targets }
    }

    #[test]
    fn what_was_learned_holds_for_other_rows() {
        let trees = Trees::new(&examples((0..64).filter(|row| row % 3 > 0)), 100);
        let others = examples((0..64).filter(|row| row % 3 == 0));
        let predicted = trees.predict(&others.points);
        let expected = others.points.iter().zip(&others.targets);
        for ((point, target), predicted) in expected.zip(predicted) {
            assert!(
                (predicted - target).abs() < 0.7,
                "{point:?}: {predicted} for {target}"
            );
        }
    }

    #[test]
    fn equal_rows_or_none_teach_their_mean() {
        let equal = Examples {
            points: vec![point(&[1.0]); 9],
            targets: vec![2.0; 9],
        };
        let trees = Trees::new(&equal, 100);
        assert!((trees.predict(&[point(&[5.0])])[0] - 2.0).abs() < 0.1);
        assert_eq!(
            Trees::new(&Examples::default(), 3).predict(&[Point::default()]),
            [0.0]
        );
    }
}
