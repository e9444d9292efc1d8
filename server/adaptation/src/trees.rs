//! Boosted trees: a sum of small trees, each of which learns what those before it left over (Friedman, 2001).
//!
//! A tree grows by the split of one leaf that explains most, until it has enough leaves (Ke et al., 2017). Splits are looked for between
//! at most 64 intervals of a column, whose sums are made for the smaller half of a split alone: the others follow by subtraction. Ours,
//! because no kept crate both stops for other work and gives the same trees for the same rows.

use std::iter::zip;

use hlorank_graph::pace;

use super::Point;
use crate::{split_mix::mix, statistics::centered};

/// What predicts a number from columns.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    /// What is predicted before the first tree.
    mean: f64,
    columns: Vec<Column>,
    rounds: Vec<Tree>,
}

/// Rows of numbers, column by column, because all columns at once may be more than the memory that a call takes.
pub(super) trait Rows {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of columns.
    fn columns(&self) -> usize;

    /// `[rows]` the values of a column.
    fn column(&self, number: usize) -> Vec<f64>;
}

/// Rows whose columns are cut into bins once, for all trees that learn from them.
pub(super) struct BinnedRows {
    columns: Vec<Column>,
    /// `[rows, columns]` number of thresholds below each value. Those of a row lie together, because they are asked for together.
    bins: Vec<u8>,
}

/// Rows to learn from.
pub(super) struct Examples<'a> {
    pub(super) rows: &'a BinnedRows,
    /// `[rows]` what is predicted.
    pub(super) targets: &'a [f64],
    /// `[rows]` how much each row counts.
    pub(super) weights: &'a [f64],
}

/// How trees grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Number of trees.
    rounds: usize,
    /// Maximum number of leaves of a tree.
    leaves: usize,
    /// Minimum number of rows of a leaf.
    least: f32,
}

/// A column that differs among the examples.
#[derive(Clone, Debug)]
struct Column {
    /// Its number among the rows' columns.
    number: usize,
    /// Ascending.
    thresholds: Vec<f64>,
}

/// Its first node is the root.
#[derive(Clone, Debug)]
struct Tree(Vec<Node>);

#[derive(Clone, Copy, Debug)]
enum Node {
    Leaf(f64),
    Split(Split, [u16; 2]),
}

/// Rows whose value lies above a threshold go to the second child.
#[derive(Clone, Copy, Debug)]
struct Split {
    /// Number among the columns of the trees.
    column: u16,
    threshold: u8,
}

/// What is left over of some rows: the total, the weight, and the number of rows, which are added at once.
#[derive(Clone, Copy, Debug, Default)]
struct Sum([f32; 4]);

/// What trees learn from, in one round.
struct Round<'a> {
    rows: &'a BinnedRows,
    /// Numbers of the columns that are drawn.
    drawn: Vec<usize>,
    /// `[rows]` what is left over, times the weight.
    left: &'a [f64],
    /// `[rows]`
    weights: &'a [f64],
    least: f32,
}

/// A leaf while its tree grows.
struct Leaf {
    node: usize,
    rows: Vec<u32>,
    /// `[drawn columns, bins]`
    sums: Vec<Sum>,
    /// The best split, and what it explains.
    best: Option<(Split, f32)>,
}

/// Maximum number of thresholds of a column, and so of bins less one.
const THRESHOLDS: usize = 63;
const BINS: usize = THRESHOLDS + 1;

/// Maximum number of columns, since learning takes time with their number.
const MAX_COLUMNS: usize = 256;

/// Number of rows whose values give the thresholds of a column, since sorting all takes longer than learning from them.
const SAMPLE: usize = 4_096;

/// Number of rows after which it is another call's turn.
const AT_ONCE: usize = 1_024;

/// What a tree adds of what its leaves found.
const RATE: f64 = 0.08;

/// Weight of 0 that every leaf has beside its rows.
const SHRINKAGE: f32 = 1.0;

/// The share of rows and of columns that a tree learns from, of 256: other rows and columns each, so that the errors of trees differ.
const SHARE_OF_ROWS: u64 = 205;
const SHARE_OF_COLUMNS: u64 = 128;

impl Growth {
    /// Trees for few or for many lists.
    pub(super) const fn new(rounds: usize, is_many: bool) -> Self {
        let (leaves, least) = if is_many { (31, 10.0) } else { (15, 5.0) };
        Self {
            rounds,
            leaves,
            least,
        }
    }
}

impl Trees {
    pub(super) fn new(examples: &Examples<'_>, growth: Growth) -> Self {
        let Examples {
            rows,
            targets,
            weights,
        } = *examples;
        let weighted = || zip(targets, weights);
        let total: f64 = weighted().map(|(target, weight)| target * weight).sum();
        let weight: f64 = weights.iter().sum();
        let mean = if weight > 0.0 { total / weight } else { 0.0 };
        let left = weighted().map(|(target, weight)| (target - mean) * weight);
        let mut left: Vec<f64> = left.collect();
        let mut trees = Vec::new();
        for number in pace::in_steps(1, 0..growth.rounds) {
            let seed = mix(number as u64);
            let round = Round {
                rows,
                drawn: (0..rows.columns.len())
                    .filter(|&column| is_drawn(mix(seed), column, SHARE_OF_COLUMNS))
                    .collect(),
                left: &left,
                weights,
                least: growth.least,
            };
            let counts = |row: &usize| weights[*row] > 0.0 && is_drawn(seed, *row, SHARE_OF_ROWS);
            let drawn = (0..left.len()).filter(counts);
            let drawn = drawn.map(|row| u32::try_from(row).unwrap_or(u32::MAX));
            let tree = round.grow(drawn.collect(), growth.leaves);
            for (row, left) in pace::in_steps(AT_ONCE, left.iter_mut().enumerate()) {
                *left -= weights[row] * tree.predict(rows.row(row));
            }
            trees.push(tree);
        }
        Self {
            mean,
            columns: rows.columns.clone(),
            rounds: trees,
        }
    }

    /// `[rows]` the number that is predicted for each row.
    pub(super) fn predict<R: Rows + ?Sized>(&self, rows: &R) -> Vec<f64> {
        let width = self.columns.len();
        let mut bins = vec![0; rows.rows() * width];
        for (place, column) in pace::in_steps(1, self.columns.iter().enumerate()) {
            let values = rows.column(column.number);
            for (row, value) in values.into_iter().enumerate() {
                bins[row * width + place] = column.bin(value);
            }
        }
        self.predict_bins(&bins, rows.rows())
    }

    /// `[rows]` the number that is predicted for each row that they learned from.
    pub(super) fn predict_known(&self, known: &BinnedRows, rows: usize) -> Vec<f64> {
        self.predict_bins(&known.bins, rows)
    }

    fn predict_bins(&self, bins: &[u8], rows: usize) -> Vec<f64> {
        let width = self.columns.len();
        let mut sums = vec![self.mean; rows];
        for tree in pace::in_steps(16, &self.rounds) {
            for (row, sum) in pace::in_steps(AT_ONCE, sums.iter_mut().enumerate()) {
                *sum += tree.predict(&bins[row * width..][..width]);
            }
        }
        sums
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let columns = self.columns.iter();
        let columns = columns.map(|column| size_of_val(&*column.thresholds));
        let trees = self.rounds.iter().map(|tree| size_of_val(&*tree.0));
        columns.sum::<usize>() + trees.sum::<usize>()
    }
}

impl Tree {
    fn predict(&self, bins: &[u8]) -> f64 {
        let mut node = self.0[0];
        loop {
            match node {
                Node::Leaf(value) => return value,
                Node::Split(split, children) => {
                    let is_above = bins[usize::from(split.column)] > split.threshold;
                    node = self.0[usize::from(children[usize::from(is_above)])];
                }
            }
        }
    }
}

impl Column {
    /// A column without thresholds if it does not differ among the rows.
    fn new(number: usize, values: &[f64]) -> Self {
        let step = values.len().div_ceil(SAMPLE).max(1);
        let mut values: Vec<f64> = values.iter().step_by(step).copied().collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let pairs = values.windows(2);
        let between: Vec<f64> = pairs.map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        // Thresholds lie evenly among the distinct values, which may differ by orders of magnitude.
        let step = between.len().div_ceil(THRESHOLDS).max(1);
        let thresholds = between.into_iter().skip(step / 2).step_by(step).collect();
        Self { number, thresholds }
    }

    /// Number of thresholds below a value.
    fn bin(&self, value: f64) -> u8 {
        let below = self
            .thresholds
            .partition_point(|threshold| *threshold < value);
        u8::try_from(below).unwrap_or(u8::MAX)
    }
}

impl BinnedRows {
    /// Cuts the columns that differ. If there are too many, those are left out that tell least of some targets by themselves.
    pub(super) fn new<R: Rows + ?Sized>(rows: &R, targets: &[f64]) -> Self {
        let weights = vec![1.0; targets.len()];
        let left = centered(targets.to_vec());
        let everything: Vec<u32> = (0..).take(targets.len()).collect();
        let mut kept: Vec<(f32, Self)> = Vec::new();
        let leave_out = |kept: &mut Vec<(f32, Self)>| {
            kept.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            kept.truncate(MAX_COLUMNS);
        };
        for number in pace::in_steps(1, 0..rows.columns()) {
            let values = rows.column(number);
            let column = Column::new(number, &values);
            if column.thresholds.is_empty() {
                continue;
            }
            let binned = Self {
                bins: values.iter().map(|value| column.bin(*value)).collect(),
                columns: vec![column],
            };
            let round = Round {
                rows: &binned,
                drawn: vec![0],
                left: &left,
                weights: &weights,
                least: 1.0,
            };
            let best = round.best_split(&round.sums(&everything));
            let gain = best.map_or(0.0, |(_, gain)| gain);
            kept.push((gain, binned));
            // Few are there at a time, because a point can have more columns than the points of a call have bytes.
            if kept.len() == 2 * MAX_COLUMNS {
                leave_out(&mut kept);
            }
        }
        leave_out(&mut kept);
        kept.sort_by_key(|(_, one)| one.columns[0].number);
        let mut bins = Vec::with_capacity(targets.len() * kept.len());
        for row in pace::in_steps(AT_ONCE, 0..targets.len()) {
            bins.extend(kept.iter().map(|(_, one)| one.bins[row]));
        }
        let columns = kept.into_iter().flat_map(|(_, one)| one.columns);
        Self {
            columns: columns.collect(),
            bins,
        }
    }

    /// `[columns]` the bins of a row.
    fn row(&self, row: usize) -> &[u8] {
        let width = self.columns.len();
        &self.bins[row * width..][..width]
    }
}

impl Round<'_> {
    /// Grows a tree of these rows.
    fn grow(&self, rows: Vec<u32>, most: usize) -> Tree {
        let mut nodes = vec![Node::Leaf(0.0)];
        let sums = self.sums(&rows);
        let mut leaves = vec![self.leaf(0, rows, sums)];
        while leaves.len() < most {
            let splits = leaves.iter().enumerate();
            let splits = splits.filter_map(|(place, leaf)| Some((place, leaf.best?)));
            // If gains are equal, the first split wins, so that the same rows grow the same tree.
            let best = splits
                .rev()
                .max_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other));
            let Some((place, (split, _))) = best else {
                break;
            };
            let leaf = leaves.swap_remove(place);
            let bin = |row: u32| self.rows.row(row as usize)[usize::from(split.column)];
            let rows = leaf.rows.iter();
            let (above, below): (Vec<u32>, Vec<u32>) =
                rows.partition(|&&row| bin(row) > split.threshold);
            let children = [nodes.len(), nodes.len() + 1];
            nodes[leaf.node] = Node::Split(
                split,
                children.map(|child| u16::try_from(child).unwrap_or(u16::MAX)),
            );
            nodes.extend([Node::Leaf(0.0); 2]);
            let smaller = usize::from(above.len() < below.len());
            let parts = [below, above];
            let of_smaller = self.sums(&parts[smaller]);
            let mut of_larger = leaf.sums;
            for (sum, part) in of_larger.iter_mut().zip(&of_smaller) {
                sum.subtract(*part);
            }
            let sums = if smaller == 0 {
                [of_smaller, of_larger]
            } else {
                [of_larger, of_smaller]
            };
            for ((node, rows), sums) in children.into_iter().zip(parts).zip(sums) {
                leaves.push(self.leaf(node, rows, sums));
            }
        }
        for leaf in leaves {
            let mut all = Sum::default();
            for &row in &leaf.rows {
                all.add(self.row(row));
            }
            nodes[leaf.node] = Node::Leaf(RATE * f64::from(all.mean()));
        }
        Tree(nodes)
    }

    fn leaf(&self, node: usize, rows: Vec<u32>, sums: Vec<Sum>) -> Leaf {
        Leaf {
            node,
            rows,
            best: self.best_split(&sums),
            sums,
        }
    }

    fn row(&self, row: u32) -> Sum {
        Sum::of_row(self.left[row as usize], self.weights[row as usize])
    }

    /// `[drawn columns, bins]` the sums of some rows.
    fn sums(&self, rows: &[u32]) -> Vec<Sum> {
        let mut sums = vec![Sum::default(); self.drawn.len() * BINS];
        let (of_columns, _) = sums.as_chunks_mut::<BINS>();
        for &row in pace::in_steps(AT_ONCE, rows) {
            let of_row = self.row(row);
            let bins = self.rows.row(row as usize);
            for (&column, sums) in zip(&self.drawn, &mut *of_columns) {
                // No bin is larger, and the compiler leaves out the check.
                sums[usize::from(bins[column]) % BINS].add(of_row);
            }
        }
        sums
    }

    /// Returns the split that explains most, and how much; nothing if no split leaves rows enough on both sides.
    fn best_split(&self, sums: &[Sum]) -> Option<(Split, f32)> {
        let mut best: Option<(Split, f32)> = None;
        for (&column, sums) in self.drawn.iter().zip(sums.chunks_exact(BINS)) {
            let bins = self.rows.columns[column].thresholds.len() + 1;
            let mut all = Sum::default();
            for sum in &sums[..bins] {
                all.add(*sum);
            }
            let unsplit = all.explained();
            let mut below = Sum::default();
            for (threshold, sum) in (0..).zip(&sums[..bins - 1]) {
                below.add(*sum);
                let mut above = all;
                above.subtract(below);
                if below.rows() < self.least || above.rows() < self.least {
                    continue;
                }
                let gain = below.explained() + above.explained() - unsplit;
                if gain > best.map_or(0.0, |(_, gain)| gain) {
                    let column = u16::try_from(column).unwrap_or(u16::MAX);
                    best = Some((Split { column, threshold }, gain));
                }
            }
        }
        best
    }
}

impl Sum {
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
    fn of_row(total: f64, weight: f64) -> Self {
        Self([total as f32, weight as f32, 1.0, 0.0])
    }

    fn add(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }

    fn subtract(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own -= other;
        }
    }

    fn rows(self) -> f32 {
        self.0[2]
    }

    fn mean(self) -> f32 {
        self.0[0] / (self.0[1] + SHRINKAGE)
    }

    /// By how much the mean lowers the sum of squares.
    fn explained(self) -> f32 {
        self.0[0] * self.mean()
    }
}

/// Whether a fixed draw takes a number.
fn is_drawn(seed: u64, number: usize, share: u64) -> bool {
    mix(seed ^ mix(number as u64)) % 256 < share
}

impl Rows for [Point] {
    fn rows(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> usize {
        self.first().map_or(0, Point::features)
    }

    fn column(&self, number: usize) -> Vec<f64> {
        self.iter().map(|point| point.feature(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(rows: impl Iterator<Item = u32>) -> (Vec<Point>, Vec<f64>) {
        let features = |row: u32| [row % 8, row / 8 % 8, row * 5 % 7].map(f64::from);
        let points: Vec<Point> = rows.map(|row| Point::of_bounds(&features(row))).collect();
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
        (points, targets)
    }

    fn learned((points, targets): &(Vec<Point>, Vec<f64>), weights: Option<&[f64]>) -> Trees {
        let ones = vec![1.0; targets.len()];
        let examples = Examples {
            rows: &BinnedRows::new(points.as_slice(), targets),
            targets,
            weights: weights.unwrap_or(&ones),
        };
        Trees::new(&examples, Growth::new(300, false))
    }

    #[test]
    fn what_was_learned_holds_for_other_rows() {
        let trees = learned(&examples((0..448).filter(|row| row % 3 > 0)), None);
        let (points, targets) = examples((0..448).filter(|row| row % 3 == 0));
        let predicted = trees.predict(points.as_slice());
        for ((point, target), predicted) in points.iter().zip(&targets).zip(predicted) {
            assert!(
                (predicted - target).abs() < 0.7,
                "{point:?}: {predicted} for {target}"
            );
        }
    }

    #[test]
    fn equal_rows_or_none_teach_their_mean() {
        let trees = learned(&(vec![Point::of_bounds(&[1.0]); 9], vec![2.0; 9]), None);
        assert!((trees.predict([Point::of_bounds(&[5.0])].as_slice())[0] - 2.0).abs() < 0.1);
        let nothing = learned(&(Vec::new(), Vec::new()), None);
        assert_eq!(nothing.predict([Point::default()].as_slice()), [0.0]);
    }

    #[test]
    fn rows_count_by_their_weights() {
        let points: Vec<Point> = (0..40_u32)
            .map(|row| Point::of_bounds(&[f64::from(row % 2)]))
            .collect();
        let targets: Vec<f64> = (0..40_u32).map(|row| f64::from(row / 20)).collect();
        let weights: Vec<f64> = targets.iter().map(|target| 1.0 + 99.0 * target).collect();
        let trees = learned(&(points, targets), Some(&weights));
        assert!(trees.predict([Point::of_bounds(&[0.0])].as_slice())[0] > 0.9);
    }
}
