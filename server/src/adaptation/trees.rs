//! Boosted trees: a sum of small trees, each of which learns what those before it left over (Friedman, 2001).
//!
//! All nodes of one depth of a tree ask the same question, so that a tree is a table with one bit of its index for each
//! question (Prokhorenkova et al., 2018). Such trees are quick to evaluate and hard to overfit.

use hlorank_graph::pace;

use crate::split_mix::mix;

/// What predicts a number from some features.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    trees: Vec<Tree>,
}

/// Rows of features, and the number that belongs to each.
#[derive(Clone, Debug, Default)]
pub(super) struct Examples {
    /// `[rows]` all with the same number of features.
    pub(super) features: Vec<Vec<f64>>,
    pub(super) targets: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Tree {
    questions: Vec<Question>,
    /// `[2^questions]` what each combination of answers adds.
    leaves: Vec<f64>,
}

/// Whether a feature is larger than a threshold.
#[derive(Clone, Copy, Debug)]
struct Question {
    feature: usize,
    threshold: f64,
}

/// The features as numbers of the intervals between thresholds.
struct Binned {
    rows: usize,
    /// Those that differ among the rows.
    features: Vec<BinnedFeature>,
}

struct BinnedFeature {
    feature: usize,
    /// Ascending.
    thresholds: Vec<f64>,
    /// `[rows]` number of thresholds below each value.
    bins: Vec<u8>,
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
    pub(super) fn of(examples: &Examples, rounds: usize) -> Self {
        let binned = Binned::of(examples);
        let mut left = examples.targets.clone();
        let mut trees = Vec::new();
        for round in pace::in_steps(1, 0..rounds) {
            let seed = mix(round as u64);
            let sampled: Vec<bool> = (0..left.len()).map(|row| is_drawn(seed, row)).collect();
            let (tree, leaf_of) = binned.tree(&left, &sampled, mix(seed));
            for (left, leaf) in left.iter_mut().zip(leaf_of) {
                *left -= tree.leaves[leaf];
            }
            trees.push(tree);
        }
        Self { trees }
    }

    pub(super) fn predict(&self, features: &[f64]) -> f64 {
        self.trees.iter().map(|tree| tree.predict(features)).sum()
    }
}

impl Tree {
    fn predict(&self, features: &[f64]) -> f64 {
        let answer =
            |question: &Question| usize::from(features[question.feature] > question.threshold);
        let leaf = self
            .questions
            .iter()
            .fold(0, |leaf, question| 2 * leaf + answer(question));
        self.leaves[leaf]
    }
}

impl Binned {
    /// The features that differ. If there are too many, those are left out that tell least of the targets by themselves.
    fn of(examples: &Examples) -> Self {
        let Examples { features, targets } = examples;
        let count = features.first().map_or(0, Vec::len);
        let binned =
            pace::in_steps(4, 0..count).map(|feature| BinnedFeature::of(feature, features));
        let mut binned: Vec<BinnedFeature> =
            binned.filter(|each| !each.thresholds.is_empty()).collect();
        if binned.len() > MAX_FEATURES {
            let all = vec![true; targets.len()];
            let root = vec![0; targets.len()];
            let gain = |each: &BinnedFeature| {
                let best = each.best_question(targets, &all, &root, 1);
                best.map_or(0.0, |best| best.gain)
            };
            let mut gains: Vec<(f64, BinnedFeature)> = pace::in_steps(4, binned)
                .map(|each| (gain(&each), each))
                .collect();
            gains.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            gains.truncate(MAX_FEATURES);
            binned = gains.into_iter().map(|(_, each)| each).collect();
            binned.sort_by_key(|each| each.feature);
        }
        Self {
            rows: targets.len(),
            features: binned,
        }
    }

    /// Returns a tree of what is left over, and the leaf of each row.
    fn tree(&self, left: &[f64], sampled: &[bool], seed: u64) -> (Tree, Vec<usize>) {
        let mut leaf_of = vec![0; self.rows];
        let mut questions = Vec::new();
        for depth in 0..DEPTH {
            let candidates = self
                .features
                .iter()
                .filter(|each| is_drawn(seed, each.feature));
            let best = candidates
                .filter_map(|each| each.best_question(left, sampled, &leaf_of, 1 << depth))
                .max_by(|one, other| one.gain.total_cmp(&other.gain));
            let Some(best) = best else { break };
            for (leaf, &bin) in leaf_of.iter_mut().zip(&best.of.bins) {
                *leaf = 2 * *leaf + usize::from(usize::from(bin) > best.bin);
            }
            questions.push(Question {
                feature: best.of.feature,
                threshold: best.of.thresholds[best.bin],
            });
        }
        let mut sums = vec![Sum::default(); 1 << questions.len()];
        for ((&leaf, &left), _) in leaf_of
            .iter()
            .zip(left)
            .zip(sampled)
            .filter(|(_, sampled)| **sampled)
        {
            sums[leaf].add(left);
        }
        let leaves = sums.iter().map(|sum| RATE * sum.mean()).collect();
        (Tree { questions, leaves }, leaf_of)
    }
}

/// A question that divides the rows well.
struct BestQuestion<'a> {
    of: &'a BinnedFeature,
    /// Number of the threshold.
    bin: usize,
    gain: f64,
}

impl BinnedFeature {
    fn of(feature: usize, rows: &[Vec<f64>]) -> Self {
        let mut values: Vec<f64> = rows.iter().map(|row| row[feature]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let between = values
            .windows(2)
            .map(|pair| f64::midpoint(pair[0], pair[1]));
        let between: Vec<f64> = between.collect();
        let step = between.len().div_ceil(THRESHOLDS).max(1);
        let thresholds: Vec<f64> = between.into_iter().skip(step / 2).step_by(step).collect();
        let bin = |row: &Vec<f64>| {
            let below = thresholds.partition_point(|threshold| *threshold < row[feature]);
            u8::try_from(below).unwrap_or(u8::MAX)
        };
        Self {
            feature,
            bins: rows.iter().map(bin).collect(),
            thresholds,
        }
    }

    /// Returns the threshold that divides the leaves best; nothing if all rows are on one side of each.
    fn best_question(
        &self,
        left: &[f64],
        sampled: &[bool],
        leaf_of: &[usize],
        leaves: usize,
    ) -> Option<BestQuestion<'_>> {
        let bins = self.thresholds.len() + 1;
        let mut sums = vec![Sum::default(); leaves * bins];
        let rows = leaf_of.iter().zip(&self.bins).zip(left).zip(sampled);
        for (((&leaf, &bin), &left), _) in rows.filter(|(_, sampled)| **sampled) {
            sums[leaf * bins + usize::from(bin)].add(left);
        }
        let mut gains = vec![0.0; self.thresholds.len()];
        for of_leaf in sums.chunks_exact(bins) {
            let all = of_leaf
                .iter()
                .fold(Sum::default(), |all, bin| all.plus(bin));
            let mut below = Sum::default();
            for (gain, bin) in gains.iter_mut().zip(of_leaf) {
                below = below.plus(bin);
                *gain += below.explained() + all.minus(&below).explained();
            }
        }
        let best = (0..gains.len()).max_by(|&one, &other| gains[one].total_cmp(&gains[other]))?;
        Some(BestQuestion {
            of: self,
            bin: best,
            gain: gains[best],
        })
    }
}

impl Sum {
    fn add(&mut self, value: f64) {
        self.total += value;
        self.count += 1.0;
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            total: self.total + other.total,
            count: self.count + other.count,
        }
    }

    fn minus(&self, other: &Self) -> Self {
        Self {
            total: self.total - other.total,
            count: self.count - other.count,
        }
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

    fn examples(rows: impl Iterator<Item = u32>) -> Examples {
        let features = |row: u32| [row % 8, row / 8 % 8, row * 5 % 7].map(f64::from).to_vec();
        let features: Vec<Vec<f64>> = rows.map(features).collect();
        let target = |row: &Vec<f64>| {
            let corner = if row[0] > 3.0 && row[1] > 3.0 {
                3.0
            } else {
                0.0
            };
            row[0] / 2.0 - corner
        };
        let targets = features.iter().map(target).collect();
        Examples { features, targets }
    }

    #[test]
    fn what_was_learned_holds_for_other_rows() {
        let trees = Trees::of(&examples((0..64).filter(|row| row % 3 > 0)), 100);
        let others = examples((0..64).filter(|row| row % 3 == 0));
        for (features, target) in others.features.iter().zip(&others.targets) {
            let predicted = trees.predict(features);
            assert!(
                (predicted - target).abs() < 0.7,
                "{features:?}: {predicted} for {target}"
            );
        }
    }

    #[test]
    fn equal_rows_or_none_teach_their_mean() {
        let equal = Examples {
            features: vec![vec![1.0]; 9],
            targets: vec![2.0; 9],
        };
        let trees = Trees::of(&equal, 100);
        assert!((trees.predict(&[5.0]) - 2.0).abs() < 0.1);
        assert_eq!(Trees::of(&Examples::default(), 3).predict(&[]), 0.0);
    }
}
