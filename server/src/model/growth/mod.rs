//! The memory that a run of a whole-graph model takes, as a function of the sizes of its inputs.
//!
//! Nobody has to state it: when a model is loaded, the server runs it on a few tiny graphs with every intermediate tensor as an
//! output, and adds up the tensors that are alive at each operator. Each of these sums is a polynomial of the sizes.

mod polynomial;
mod probe;
mod traced;

use bytes::Bytes;
use hlorank_graph::Task;

pub use self::polynomial::RunSizes;
use self::{polynomial::Fit, probe::Probe, traced::Traced};
use super::{ArtifactError, ModelFeatures, manifest::MODEL};
use crate::runtime::Runtime;

/// How the memory of a run grows with the sizes of its inputs.
pub struct MemoryGrowth {
    fit: Fit,
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
    ) -> Result<Self, ArtifactError> {
        let probe = Probe::new(task, features);
        Self::fitted(model, runtime, &probe).map_err(|detail| ArtifactError::MemoryUnknown {
            file: MODEL,
            detail,
        })
    }

    fn fitted(model: &Bytes, runtime: &Runtime, probe: &Probe) -> Result<Self, String> {
        let fit = Fit::new(probe.has_slots());
        let mut traced = Traced::new(model, runtime).map_err(|error| error.to_string())?;
        let mut live = |sizes| traced.live(probe, sizes).map_err(|error| error.to_string());
        let points = fit.points().into_iter();
        let at_points = points.map(&mut live).collect::<Result<Vec<_>, _>>()?;
        let growth = Self {
            steps: fit.polynomials(at_points),
            fit,
        };
        // These sizes lie beyond all points of the fit. There, tensors that grow faster than with
        // the second degree exceed the polynomials.
        let slots = if probe.has_slots() { CHECK.slots } else { 0 };
        let check = RunSizes { slots, ..CHECK };
        let found = live(check)?.into_iter().fold(0.0, f64::max);
        growth.check(check, found)?;
        Ok(growth)
    }

    /// Fails if a run of some sizes takes more bytes of tensors than the polynomials say.
    fn check(&self, sizes: RunSizes, found: f64) -> Result<(), String> {
        let expected = self.live(sizes);
        if found > expected * (1.0 + ROUNDING) {
            return Err(format!(
                "{found} bytes of tensors at {sizes:?}, where a polynomial of the second degree gives {expected:.0}"
            ));
        }
        Ok(())
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
        let terms = self.fit.terms(sizes);
        let value = |step: &Vec<f64>| {
            step.iter()
                .zip(&terms)
                .map(|(factor, term)| factor * term)
                .sum()
        };
        self.steps.iter().map(value).fold(0.0, f64::max)
    }
}
