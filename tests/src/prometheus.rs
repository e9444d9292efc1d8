use std::{
    env,
    io::{self, Write as _},
    path::PathBuf,
};

use crate::repository;

/// A program of Prometheus: from the folder that `HLORANK_PROMETHEUS` names, else from what `make setup-prometheus`
/// brings. Says on stderr what is skipped, and returns `None`, where it is absent.
#[must_use]
pub fn prometheus(program: &str) -> Option<PathBuf> {
    let fetched = || repository("target/prometheus");
    let folder = env::var_os("HLORANK_PROMETHEUS").map_or_else(fetched, PathBuf::from);
    let found = folder.join(program);
    if found.exists() {
        return Some(found);
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not `eprintln!`, which a passing test keeps to itself.
    let _ = writeln!(io::stderr(), "skipped: {test} needs {program}; `make setup-prometheus` fetches it");
    None
}
