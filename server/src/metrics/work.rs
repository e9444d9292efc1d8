use metrics::{Counter, Gauge, Histogram};

use super::recorder::{Recorder, series, set};
use crate::outcome::Timings;

series! {
    /// Metrics of the work that is in flight and queued.
    pub struct LoadSeries {
        /// Requests in flight; a stream is one request until it ends
        pub requests: Gauge = "hlorank_requests_in_progress",
        /// Maximum number of requests in flight
        pub max_requests: Gauge = "hlorank_max_requests",
        /// Tasks queued for a compute thread
        pub queued_tasks: Gauge = "hlorank_compute_queue_tasks",
        /// Number of compute threads
        pub threads: Gauge = "hlorank_compute_threads",
        /// Panics of compute threads. The thread is replaced; its task fails or is retried in parts
        pub worker_panics: Counter = "hlorank_worker_panics_total",
        /// Distinct rows that are queued or being evaluated
        pub waiting_rows: Gauge = "hlorank_waiting_rows",
        /// Queued work of calls in flight: rows still to be evaluated, times the padded nodes of each
        pub queued_nodes: Gauge = "hlorank_queued_nodes",
        /// Maximum amount of queued work, in padded nodes
        pub max_queued_nodes: Gauge = "hlorank_max_queued_nodes",
        /// Bytes held by calls in flight: messages, embeddings, and answers until they are sent
        pub call_bytes: Gauge = "hlorank_call_bytes",
        /// Maximum number of bytes held by calls in flight
        pub max_call_bytes: Gauge = "hlorank_max_call_bytes",
    }
}

series! {
    /// Time that calls spend in each stage.
    pub struct StageSeries {}
    Histogram "hlorank_stage_duration_seconds" by stage: "Time per stage: queue, parse, encode, head and total of every scored batch, rank of every ranking, and featurize of every graph that was read" {
        queue = "queue",
        /// Time to read a graph.
        pub featurize = "featurize",
        parse = "parse",
        encode = "encode",
        head = "head",
        /// Time to rank.
        pub rank = "rank",
        total = "total",
    }
}

/// Metrics of a cache, or of one index of a cache.
#[derive(Clone)]
pub struct CacheSeries {
    /// Lookups that found an entry.
    pub hits: Counter,
    /// Lookups that found none.
    pub misses: Counter,
    /// Entries that were evicted.
    pub evictions: Counter,
    /// Current size in bytes.
    pub bytes: Gauge,
    /// Maximum size in bytes.
    pub max_bytes: Gauge,
    /// Number of entries.
    pub entries: Gauge,
}

series! {
    /// Size of a cache whose lookups are not counted, and its limit.
    #[derive(Clone)]
    pub struct CacheSize {
        /// Size of the cache in bytes, including keys: graphs by hash and by the source that was sent (a graph that both have is
        /// held once and counted in both), embeddings, the kernels of programs before fusion, what models computed of segments
        /// alone, what was learned from the measurements of a graph and from those of other targets, models of instances,
        /// batches that calls name by digest, and leases
        bytes: Gauge = "hlorank_cache_bytes",
        /// Maximum size of the cache in bytes
        max_bytes: Gauge = "hlorank_cache_max_bytes",
    }
}

/// Sizes of the caches whose lookups are not counted.
pub struct CacheSizes {
    /// What is known of the kernels of programs.
    pub kernels: CacheSize,
    /// What models computed of segments alone.
    pub segments: CacheSize,
    /// What was learned from measurements.
    pub learned: CacheSize,
    /// What was learned from the measurements of other targets.
    pub other_targets: CacheSize,
    /// Models of instances.
    pub instances: CacheSize,
    /// Batches that calls name by digest.
    pub batches: CacheSize,
    /// Leases of configurations.
    pub leases: CacheSize,
}

/// Metrics of the graph cache.
#[derive(Clone)]
pub struct GraphCacheSeries {
    /// The index by graph hash.
    pub by_hash: CacheSeries,
    /// The index by the source that was sent.
    pub by_source: CacheSeries,
}

impl StageSeries {
    /// Records the stages of a scored batch.
    pub fn scored(&self, timings: &Timings) {
        self.queue.record(timings.queue);
        self.parse.record(timings.parse);
        self.encode.record(timings.encode);
        self.head.record(timings.head);
        self.total.record(timings.total);
    }
}

impl CacheSeries {
    /// Counts a lookup.
    pub fn count(&self, found: bool) {
        let counter = if found { &self.hits } else { &self.misses };
        counter.increment(1);
    }

    /// Returns the metrics of a cache whose lookups are counted.
    pub(super) fn new(recorder: &Recorder, cache: &str) -> Self {
        let labels = [("cache", cache)];
        let requests = |result| {
            recorder.series(
                "hlorank_cache_requests_total",
                "Lookups. A miss of `embeddings`, one for each distinct row, is evaluated, unless another call is evaluating it already. \
                 A miss of `graphs_by_source` reads the graph; a call that waits while another call reads it is a hit",
                &[labels[0], ("result", result)],
            )
        };
        let CacheSize { bytes, max_bytes } = CacheSize::new(recorder, &labels);
        Self {
            hits: requests("hit"),
            misses: requests("miss"),
            evictions: recorder.series(
                "hlorank_cache_evictions_total",
                "Entries that were evicted, or did not fit in the cache",
                &labels,
            ),
            bytes,
            max_bytes,
            entries: recorder.series("hlorank_cache_entries", "Entries in the cache", &labels),
        }
    }
}

impl CacheSize {
    /// Sets the size and the limit.
    pub fn set(&self, bytes: u64, max_bytes: u64) {
        set(&self.bytes, bytes);
        set(&self.max_bytes, max_bytes);
    }
}

impl CacheSizes {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let size = |cache| CacheSize::new(recorder, &[("cache", cache)]);
        Self {
            kernels: size("kernels"),
            segments: size("segments"),
            learned: size("learned"),
            other_targets: size("other_targets"),
            instances: size("instances"),
            batches: size("batches"),
            leases: size("leases"),
        }
    }
}

impl GraphCacheSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        Self {
            by_hash: CacheSeries::new(recorder, "graphs_by_hash"),
            by_source: CacheSeries::new(recorder, "graphs_by_source"),
        }
    }
}
