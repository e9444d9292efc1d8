use metrics::{Counter, Gauge};

use super::{Family, Recorder};

const REQUESTS: Family<Gauge, 0> = Family::new(
    "hlorank_requests_in_progress",
    [],
    "Requests in progress or waiting; a stream counts until it ends",
);

const MAX_REQUESTS: Family<Gauge, 0> =
    Family::new("hlorank_max_requests", [], "Requests beyond which one more is refused");

const QUEUED_TASKS: Family<Gauge, 0> =
    Family::new("hlorank_compute_queue_tasks", [], "Tasks that wait for a compute thread");

const THREADS: Family<Gauge, 0> = Family::new("hlorank_compute_threads", [], "Compute threads");

const WORKER_PANICS: Family<Counter, 0> = Family::new(
    "hlorank_worker_panics_total",
    [],
    "Panics of compute threads, each of which was replaced; what it was doing failed, or was done again in parts",
);

const WAITING_ROWS: Family<Gauge, 0> =
    Family::new("hlorank_waiting_rows", [], "Distinct rows that are being evaluated or wait for it");

const QUEUED_NODES: Family<Gauge, 0> = Family::new(
    "hlorank_queued_nodes",
    [],
    "Work that calls in progress have left: rows to evaluate, times the nodes of each",
);

const MAX_QUEUED_NODES: Family<Gauge, 0> =
    Family::new("hlorank_max_queued_nodes", [], "Work beyond which a call that needs more is refused");

const CALL_BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_call_bytes",
    [],
    "Bytes that calls in progress hold: messages, what is evaluated for them, and answers until they are sent",
);

const MAX_CALL_BYTES: Family<Gauge, 0> =
    Family::new("hlorank_max_call_bytes", [], "Bytes beyond which a call that needs more is refused");

/// What is in progress and what waits.
pub struct LoadSeries {
    /// Admitted requests.
    pub requests: Gauge,
    /// At most admitted.
    pub max_requests: Gauge,
    /// Of the compute pool.
    pub queued_tasks: Gauge,
    /// Of the compute pool.
    pub threads: Gauge,
    /// Of the compute pool.
    pub worker_panics: Counter,
    /// Of all calls.
    pub waiting_rows: Gauge,
    /// Of all calls.
    pub queued_nodes: Gauge,
    /// At most queued.
    pub max_queued_nodes: Gauge,
    /// Of all calls.
    pub call_bytes: Gauge,
    /// At most held.
    pub max_call_bytes: Gauge,
}

impl LoadSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let gauge = |family: Family<Gauge, 0>| family.series(recorder, []);
        Self {
            requests: gauge(REQUESTS),
            max_requests: gauge(MAX_REQUESTS),
            queued_tasks: gauge(QUEUED_TASKS),
            threads: gauge(THREADS),
            worker_panics: WORKER_PANICS.series(recorder, []),
            waiting_rows: gauge(WAITING_ROWS),
            queued_nodes: gauge(QUEUED_NODES),
            max_queued_nodes: gauge(MAX_QUEUED_NODES),
            call_bytes: gauge(CALL_BYTES),
            max_call_bytes: gauge(MAX_CALL_BYTES),
        }
    }
}
