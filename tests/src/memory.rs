//! Resident memory of a process.

use std::fs;

/// Returns the resident memory of a process in bytes, as Linux reports it.
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn resident_bytes(process: u32) -> usize {
    const PAGE_BYTES: usize = 4096;
    let sizes = fs::read_to_string(format!("/proc/{process}/statm")).expect("a running process");
    let pages: usize = sizes.split(' ').nth(1).expect("the resident size").parse().expect("a number");
    pages * PAGE_BYTES
}
