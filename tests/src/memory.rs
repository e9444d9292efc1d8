//! How much of a process is in memory.

use std::fs;

/// Bytes of a process that are in memory, as Linux tells.
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
