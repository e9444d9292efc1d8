use metrics::{Counter, Gauge};

use super::{family::Family, recorder::Recorder};

const REQUESTS: Family<Gauge, 0> = Family::new(
    "hlorank_requests_in_progress",
    [],
    "Requests in flight; a stream is one request until it ends",
);

const MAX_REQUESTS: Family<Gauge, 0> = Family::new(
    "hlorank_max_requests",
    [],
    "Maximum number of requests in flight",
);

const QUEUED_TASKS: Family<Gauge, 0> = Family::new(
    "hlorank_compute_queue_tasks",
    [],
    "Tasks queued for a compute thread",
);

const THREADS: Family<Gauge, 0> =
    Family::new("hlorank_compute_threads", [], "Number of compute threads");

const WORKER_PANICS: Family<Counter, 0> = Family::new(
    "hlorank_worker_panics_total",
    [],
    "Panics of compute threads. The thread is replaced; its task fails or is retried in parts",
);

const WAITING_ROWS: Family<Gauge, 0> = Family::new(
    "hlorank_waiting_rows",
    [],
    "Distinct rows that are queued or being evaluated",
);

const QUEUED_NODES: Family<Gauge, 0> = Family::new(
    "hlorank_queued_nodes",
    [],
    "Queued work of calls in flight: rows still to be evaluated, times the padded nodes of each",
);

const MAX_QUEUED_NODES: Family<Gauge, 0> = Family::new(
    "hlorank_max_queued_nodes",
    [],
    "Maximum amount of queued work, in padded nodes",
);

const CALL_BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_call_bytes",
    [],
    "Bytes held by calls in flight: messages, embeddings, and answers until they are sent",
);

const MAX_CALL_BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_max_call_bytes",
    [],
    "Maximum number of bytes held by calls in flight",
);

/// Metrics of the work that is in flight and queued.
pub struct LoadSeries {
    /// Requests in flight.
    pub requests: Gauge,
    /// Maximum number of requests in flight.
    pub max_requests: Gauge,
    /// Tasks queued in the compute pool.
    pub queued_tasks: Gauge,
    /// Threads of the compute pool.
    pub threads: Gauge,
    /// Panics of the compute pool's threads.
    pub worker_panics: Counter,
    /// Rows queued or being evaluated, over all calls.
    pub waiting_rows: Gauge,
    /// Queued work over all calls, in padded nodes.
    pub queued_nodes: Gauge,
    /// Maximum amount of queued work, in padded nodes.
    pub max_queued_nodes: Gauge,
    /// Bytes held by all calls.
    pub call_bytes: Gauge,
    /// Maximum number of bytes held by all calls.
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
