use metrics::{Counter, Gauge};

use super::{family::Family, recorder::Recorder};

const MEASUREMENTS: Family<Gauge, 0> = Family::new(
    "hlorank_measurements",
    [],
    "Measurements in the store; 0 without --measurements",
);

const BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_measurements_bytes",
    [],
    "Bytes of the measurements in the store, without the overhead of the file",
);

const MAX_BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_measurements_max_bytes",
    [],
    "Maximum number of bytes of the measurements in the store; 0 without --measurements",
);

const REPORTED: Family<Counter, 1> = Family::new(
    "hlorank_measurements_reported_total",
    ["result"],
    "Measurements of successful reports: accepted, or known because they were reported before",
);

const FAILURES: Family<Counter, 0> = Family::new(
    "hlorank_measurements_failures_total",
    [],
    "Reads and writes of the store that failed. A call to rank goes on without stored measurements",
);

/// Metrics of the store of measurements.
pub struct StoreSeries {
    /// Measurements.
    pub measurements: Gauge,
    /// Their bytes.
    pub bytes: Gauge,
    /// Maximum number of bytes.
    pub max_bytes: Gauge,
    /// New measurements.
    pub accepted: Counter,
    /// Measurements that were reported before.
    pub known: Counter,
    /// Failed reads and writes.
    pub failures: Counter,
}

impl StoreSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        Self {
            measurements: MEASUREMENTS.series(recorder, []),
            bytes: BYTES.series(recorder, []),
            max_bytes: MAX_BYTES.series(recorder, []),
            accepted: REPORTED.series(recorder, ["accepted"]),
            known: REPORTED.series(recorder, ["known"]),
            failures: FAILURES.series(recorder, []),
        }
    }
}
