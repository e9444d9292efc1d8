//! What a version must pass before it serves: it answers its golden cases with the scores that its exporter saw, and is
//! not much slower than the version before.

mod engine;
mod golden;
mod limit;

pub(super) use engine::ValidationEngine;
pub(super) use golden::GoldenCases;
pub(super) use limit::LoadLimit;
