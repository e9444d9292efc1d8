//! The memory that a run of a whole-graph model takes, as a function of the sizes of its inputs.
//!
//! Nobody has to state it: when a model is loaded, the server runs it on a few tiny graphs with every intermediate tensor as an
//! output, and adds up the tensors that are alive at each operator. Each of these sums is a polynomial of the sizes. A bound from
//! the manifest and the interface alone would not hold: the tensors inside a model decide what a run takes.

mod polynomial;
mod traced;

use bytes::Bytes;
use hlorank_graph::Task;

pub use self::polynomial::RunSizes;
use self::{
    polynomial::{points, polynomials, terms},
    traced::Traced,
};
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
        let traced = Traced::new(model, runtime, task, features);
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
    #[must_use]
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
