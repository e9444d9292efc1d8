use super::{Measurement, Subject};

/// A part of the measurements, in the order of their keys: by target, graph and configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The measurements, and what each is about.
    pub measurements: Vec<(Subject, Measurement)>,
    /// The key of the last one that was looked at, if there may be more.
    pub next: Option<Vec<u8>>,
}

/// Maximum size of a page in bytes of keys and records, so that a message holds it.
pub(super) const MAX_PAGE_BYTES: usize = 1 << 20;

/// Maximum number of measurements that are looked at for a page, of which those of one reporter may be few.
pub(super) const MAX_SCANNED: usize = 100_000;
