//! Resident memory of a process.

use std::fs;

/// Returns how many bytes a process may take for what a documented limit bounds: a third more, which OPERATING.md gives to the
/// fragments of the heap.
pub const fn with_fragments(limit: usize) -> usize {
    limit / 3 * 4
}

/// Returns the resident memory of a process in bytes, as Linux reports it.
pub fn resident_bytes(process: u32) -> usize {
    const PAGE_BYTES: usize = 4096;
    let sizes = fs::read_to_string(format!("/proc/{process}/statm")).expect("a running process");
    let pages: usize = sizes
        .split(' ')
        .nth(1)
        .expect("the resident size")
        .parse()
        .expect("a number");
    pages * PAGE_BYTES
}

/// Returns the largest resident memory that a process has had since its start or the last [`reset_peak`], in bytes, as
/// Linux reports it.
pub fn peak_bytes(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("the peak");
    let kibibytes: usize = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kibibytes << 10
}

/// Makes [`peak_bytes`] forget the past of a process.
pub fn reset_peak(process: u32) {
    const RESET_PEAK: &str = "5";
    fs::write(format!("/proc/{process}/clear_refs"), RESET_PEAK).expect("a running process");
}
