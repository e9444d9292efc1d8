//! Files and modules are read into graphs, in one canonical form, and modules are cut into kernels.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod array_files;
mod canonical_form;
mod configurations;
pub mod forms;
mod fusion;
mod loops;
#[allow(dead_code, reason = "whole-system tests use the rest")]
#[path = "../../../tests/src/module.rs"]
pub mod module;
mod reading;
mod recognized;

use std::path::{Path, PathBuf};

/// Returns the path of a file or folder of `tests/data`.
fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data")
        .join(path)
}
