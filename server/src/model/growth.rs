//! The memory that a run of a whole-graph model takes, as a function of the sizes of its inputs.
//!
//! Nobody has to state it: when a model is loaded, the server runs it on a few tiny graphs with every intermediate tensor as an
//! output, and adds up the tensors that are alive at each operator. Each of these sums is a polynomial of the sizes. A bound from
//! the manifest and the interface alone would not hold: the tensors inside a model decide what a run takes.

mod traced;

use bytes::Bytes;
use hlorank_graph::Task;

pub use self::traced::RunSizes;
use self::traced::TracedModel;
use super::{ModelFeatures, Rejection, manifest::MODEL};
use crate::runtime::Runtime;

/// How the memory of a run grows with the sizes of its inputs.
pub struct MemoryGrowth {
    /// Polynomials of bytes. The run takes the largest of their values.
    steps: Vec<Vec<f64>>,
}

/// Bytes of the largest fixed part: kernels use buffers of their own, and allocators round up.
const FIXED_BYTES: f64 = (1 << 20) as f64;

/// The memory of a run, relative to the tensors that are alive: free memory that no tensor fits, buffers inside operators, and the
/// order of operators, which ONNX Runtime chooses. `tests/tests/run_memory.rs` compares it with the memory of the process.
const MARGIN: f64 = 2.5;

/// Sizes at which the polynomials are checked.
const CHECK: RunSizes = RunSizes {
    nodes: 23,
    edges: 31,
    slots: 9,
    configs: 16,
};

/// A polynomial may be below a check by this fraction, because of rounding.
const ROUNDING: f64 = 1e-3;

/// Highest degree.
const DEGREE: usize = 2;

/// Sizes of the smallest graph, and the steps to the next ones.
const FIRST: RunSizes = RunSizes {
    nodes: 6,
    edges: 5,
    slots: 2,
    configs: 4,
};
const STEP: RunSizes = RunSizes {
    nodes: 4,
    edges: 3,
    slots: 2,
    configs: 4,
};

/// Factors are rounded to multiples of this, which removes what rounding left.
const UNIT: f64 = 1.0 / 16.0;

impl MemoryGrowth {
    /// Finds out how the memory of a serialized model grows. Fails if it cannot be run on tiny graphs, or if its memory grows
    /// faster than the polynomials.
    pub(super) fn measure(
        model: &Bytes,
        runtime: &Runtime,
        task: Task,
        features: &ModelFeatures,
    ) -> Result<Self, Rejection> {
        let unknown = |detail: String| {
            let message = format!(
                "{MODEL}: the memory of a run cannot be bounded: {detail}; export a model that can be run on graphs of a few \
                 nodes, and whose tensors grow at most with the square of the nodes, edges and configurations"
            );
            Rejection::new("MEMORY_UNKNOWN", message)
        };
        let traced = TracedModel::new(model, runtime, task, features);
        let mut traced = traced.map_err(|error| unknown(error.to_string()))?;
        let mut live = |sizes| {
            traced
                .live(sizes)
                .map_err(|error| unknown(error.to_string()))
        };
        let at_points = points().into_iter().map(&mut live);
        let growth = Self {
            steps: polynomials(at_points.collect::<Result<_, _>>()?),
        };
        // These sizes lie beyond all points. There, tensors that grow faster than with the second
        // degree exceed the polynomials.
        let found = live(CHECK)?.into_iter().fold(0.0, f64::max);
        let expected = growth.live(CHECK);
        if found > expected * (1.0 + ROUNDING) {
            return Err(unknown(format!(
                "{found} bytes of tensors at {CHECK:?}, where a polynomial of the second degree gives {expected:.0}"
            )));
        }
        Ok(growth)
    }

    /// Estimates the bytes that a run takes beside its inputs: an upper bound, except for operators whose output depends on
    /// values rather than on sizes.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of bytes, which saturates"
    )]
    pub fn bytes(&self, sizes: RunSizes) -> usize {
        (self.live(sizes) * MARGIN + FIXED_BYTES) as usize
    }

    /// Returns the bytes of tensors that are alive at the operator where there are most.
    fn live(&self, sizes: RunSizes) -> f64 {
        let terms = terms(sizes);
        let value = |step: &Vec<f64>| {
            step.iter()
                .zip(&terms)
                .map(|(factor, term)| factor * term)
                .sum()
        };
        self.steps.iter().map(value).fold(0.0, f64::max)
    }
}

/// Returns sizes that determine a polynomial.
fn points() -> Vec<RunSizes> {
    // The lattice of a simplex in nodes, edges and slots has as many points as a polynomial of the
    // second degree has terms, and determines it. So do three numbers of configurations.
    let mut points = Vec::new();
    for configs in 0..=DEGREE {
        for slots in 0..=DEGREE {
            for edges in 0..=DEGREE - slots {
                for nodes in 0..=DEGREE - slots - edges {
                    points.push(RunSizes {
                        nodes: FIRST.nodes + nodes * STEP.nodes,
                        edges: FIRST.edges + edges * STEP.edges,
                        slots: FIRST.slots + slots * STEP.slots,
                        configs: FIRST.configs + configs * STEP.configs,
                    });
                }
            }
        }
    }
    points
}

/// Returns the values of the terms of a polynomial of the second degree in nodes, edges and slots, times one of the second degree
/// in configurations.
#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn terms(sizes: RunSizes) -> Vec<f64> {
    let [n, e, k, c] =
        [sizes.nodes, sizes.edges, sizes.slots, sizes.configs].map(|size| size as f64);
    let of_graph = [1.0, n, e, n * n, n * e, e * e, k, k * k, n * k, e * k];
    let of_configs = [1.0, c, c * c].into_iter();
    of_configs
        .flat_map(|of_configs| of_graph.map(|of| of * of_configs))
        .collect()
}

/// Returns the polynomials through values: `values[p][s]` is that of polynomial `s` at point `p`. Factors below zero are left
/// out, and so are polynomials that are below another one everywhere.
fn polynomials(values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    // Row p says that the terms at point p, times the factors sought, are the values at p. One
    // elimination solves this for all polynomials, whose values are further columns.
    let mut rows: Vec<Vec<f64>> = points().into_iter().map(terms).collect();
    for (row, values) in rows.iter_mut().zip(values) {
        row.extend(values);
    }
    eliminate(&mut rows);
    let columns = rows.first().map_or(0, Vec::len);
    // No size is negative, so an estimate without the terms below zero is not too small.
    let rounded = |factor: f64| ((factor / UNIT).round() * UNIT).max(0.0);
    let polynomial = |column: usize| rows.iter().map(|row| rounded(row[column])).collect();
    largest((rows.len()..columns).map(polynomial).collect())
}

/// Makes the left part of a matrix the identity. It has as many columns as there are rows.
fn eliminate(rows: &mut [Vec<f64>]) {
    for column in 0..rows.len() {
        // The terms differ by orders of magnitude: division by a small pivot would lose digits.
        let size = |row: &usize| rows[*row][column].abs();
        let left = column..rows.len();
        let largest = left.max_by(|one, other| size(one).total_cmp(&size(other)));
        rows.swap(column, largest.unwrap_or(column));
        let pivot = rows[column][column];
        rows[column].iter_mut().for_each(|value| *value /= pivot);
        let own = rows[column].clone();
        for (number, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if number != column && factor != 0.0 {
                row.iter_mut()
                    .zip(&own)
                    .for_each(|(value, own)| *value -= factor * own);
            }
        }
    }
}

/// Leaves out every polynomial that has no larger factor than another.
fn largest(mut polynomials: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    // A polynomial that is at least as large in every factor has at least the same sum, so it comes
    // first in this order and is kept already.
    let sum = |polynomial: &Vec<f64>| polynomial.iter().sum::<f64>();
    polynomials.sort_by(|one, other| sum(other).total_cmp(&sum(one)));
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for polynomial in polynomials {
        let is_below = |other: &Vec<f64>| {
            polynomial
                .iter()
                .zip(other)
                .all(|(own, other)| own <= other)
        };
        if !kept.iter().any(is_below) {
            kept.push(polynomial);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::cast_precision_loss,
        reason = "the numbers of bytes are below 2^53"
    )]
    fn a_polynomial_is_found_from_its_values_at_tiny_sizes() {
        let bytes = |of: RunSizes| {
            let square =
                4 * of.nodes * of.nodes + 12 * of.nodes * of.edges + 8 * of.slots * of.slots;
            (100 + 288 * of.configs * of.nodes + square + 4 * of.configs * of.configs * of.edges)
                as f64
        };
        let values = points().into_iter().map(|point| vec![bytes(point), 7.0]);
        let found = polynomials(values.collect());
        assert_eq!(found.len(), 1, "the other is below it everywhere");
        for slots in [0, 5_000] {
            let large = RunSizes {
                nodes: 20_000,
                edges: 50_000,
                slots,
                configs: 64,
            };
            let value: f64 = found[0]
                .iter()
                .zip(terms(large))
                .map(|(factor, term)| factor * term)
                .sum();
            assert_eq!(value, bytes(large));
        }
    }
}
