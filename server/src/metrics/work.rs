use metrics::{Counter, Gauge, Histogram};

use super::recorder::{Recorder, set};
use crate::outcome::Timings;

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

/// Time that calls spend in each stage.
pub struct StageSeries {
    queue: Histogram,
    /// Time to read a graph.
    pub featurize: Histogram,
    parse: Histogram,
    encode: Histogram,
    head: Histogram,
    /// Time to rank.
    pub rank: Histogram,
    total: Histogram,
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

/// Size of a cache whose lookups are not counted, and its limit.
#[derive(Clone)]
pub struct CacheSize {
    bytes: Gauge,
    max_bytes: Gauge,
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

impl LoadSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let gauge = |name, help| recorder.gauge(name, help, &[]);
        Self {
            requests: gauge(
                "hlorank_requests_in_progress",
                "Requests in flight; a stream is one request until it ends",
            ),
            max_requests: gauge("hlorank_max_requests", "Maximum number of requests in flight"),
            queued_tasks: gauge(
                "hlorank_compute_queue_tasks",
                "Tasks queued for a compute thread",
            ),
            threads: gauge("hlorank_compute_threads", "Number of compute threads"),
            worker_panics: recorder.counter(
                "hlorank_worker_panics_total",
                "Panics of compute threads. The thread is replaced; its task fails or is retried in parts",
                &[],
            ),
            waiting_rows: gauge(
                "hlorank_waiting_rows",
                "Distinct rows that are queued or being evaluated",
            ),
            queued_nodes: gauge(
                "hlorank_queued_nodes",
                "Queued work of calls in flight: rows still to be evaluated, times the padded nodes of each",
            ),
            max_queued_nodes: gauge(
                "hlorank_max_queued_nodes",
                "Maximum amount of queued work, in padded nodes",
            ),
            call_bytes: gauge(
                "hlorank_call_bytes",
                "Bytes held by calls in flight: messages, embeddings, and answers until they are sent",
            ),
            max_call_bytes: gauge(
                "hlorank_max_call_bytes",
                "Maximum number of bytes held by calls in flight",
            ),
        }
    }
}

impl StageSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let stage = |name| {
            recorder.histogram(
                "hlorank_stage_duration_seconds",
                "Time per stage: queue, parse, encode, head and total of every scored batch, rank of every ranking, and featurize \
                 of every graph that was read",
                &[("stage", name)],
            )
        };
        Self {
            queue: stage("queue"),
            featurize: stage("featurize"),
            parse: stage("parse"),
            encode: stage("encode"),
            head: stage("head"),
            rank: stage("rank"),
            total: stage("total"),
        }
    }

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

    /// Returns the metrics of the embedding cache.
    pub(super) fn of_embeddings(recorder: &Recorder) -> Self {
        let requests = |result| {
            recorder.counter(
                "hlorank_embedding_cache_requests_total",
                "Lookups of distinct rows. A missing row is evaluated, unless another call is evaluating it already",
                &[("result", result)],
            )
        };
        let gauge = |name, help| recorder.gauge(name, help, &[]);
        Self {
            hits: requests("hit"),
            misses: requests("miss"),
            evictions: recorder.counter(
                "hlorank_embedding_cache_evictions_total",
                "Embeddings that were evicted, or did not fit in the cache",
                &[],
            ),
            bytes: gauge(
                "hlorank_embedding_cache_bytes",
                "Size of the embedding cache in bytes, including keys",
            ),
            max_bytes: gauge(
                "hlorank_embedding_cache_max_bytes",
                "Maximum size of the embedding cache in bytes",
            ),
            entries: gauge("hlorank_embedding_cache_entries", "Embeddings in the cache"),
        }
    }

    /// Returns the metrics of one index of the graph cache.
    fn of_graphs(recorder: &Recorder, index: &str) -> Self {
        let requests = |result| {
            recorder.counter(
                "hlorank_graph_cache_requests_total",
                "Lookups of graphs, by hash or by the source that was sent. A miss of a source reads the graph; a call that waits \
                 while another call reads it is a hit",
                &[("index", index), ("result", result)],
            )
        };
        let gauge = |name, help| recorder.gauge(name, help, &[("index", index)]);
        Self {
            hits: requests("hit"),
            misses: requests("miss"),
            evictions: recorder.counter(
                "hlorank_graph_cache_evictions_total",
                "Entries evicted from the graph cache",
                &[("index", index)],
            ),
            bytes: gauge(
                "hlorank_graph_cache_bytes",
                "Size of the graph cache in bytes. A graph in both indexes is held once and counted in both",
            ),
            max_bytes: gauge(
                "hlorank_graph_cache_max_bytes",
                "Maximum size of the graph cache in bytes",
            ),
            entries: gauge(
                "hlorank_graph_cache_entries",
                "Entries in the graph cache: graphs by hash, and sources that clients sent",
            ),
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
        let size = |cache| {
            CacheSize {
            bytes: recorder.gauge(
                "hlorank_other_cache_bytes",
                "Sizes of the other caches in bytes: of the kernels of programs before fusion, of what models \
                 computed of segments alone, of what was learned from the measurements of a graph and from those \
                 of other targets, of batches that calls name by digest, and of leases",
                &[("cache", cache)],
            ),
            max_bytes: recorder.gauge(
                "hlorank_other_cache_max_bytes",
                "Maximum sizes of the other caches in bytes",
                &[("cache", cache)],
            ),
        }
        };
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
            by_hash: CacheSeries::of_graphs(recorder, "hash"),
            by_source: CacheSeries::of_graphs(recorder, "source"),
        }
    }
}
