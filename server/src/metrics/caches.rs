use metrics::{Counter, Gauge};

use super::{family::Family, recorder::Recorder};

const GRAPH_REQUESTS: Family<Counter, 2> = Family::new(
    "hlorank_graph_cache_requests_total",
    ["index", "result"],
    "Lookups of graphs, by hash or by the source that was sent. A miss of a source reads the graph; a call that waits \
     while another call reads it is a hit",
);

const GRAPH_EVICTIONS: Family<Counter, 1> = Family::new(
    "hlorank_graph_cache_evictions_total",
    ["index"],
    "Entries evicted from the graph cache",
);

const GRAPH_BYTES: Family<Gauge, 1> = Family::new(
    "hlorank_graph_cache_bytes",
    ["index"],
    "Size of the graph cache in bytes. A graph in both indexes is held once and counted in both",
);

const GRAPH_MAX_BYTES: Family<Gauge, 1> = Family::new(
    "hlorank_graph_cache_max_bytes",
    ["index"],
    "Maximum size of the graph cache in bytes",
);

const GRAPH_ENTRIES: Family<Gauge, 1> = Family::new(
    "hlorank_graph_cache_entries",
    ["index"],
    "Entries in the graph cache: graphs by hash, and sources that clients sent",
);

const EMBEDDING_REQUESTS: Family<Counter, 1> = Family::new(
    "hlorank_embedding_cache_requests_total",
    ["result"],
    "Lookups of distinct rows. A missing row is evaluated, unless another call is evaluating it already",
);

const EMBEDDING_EVICTIONS: Family<Counter, 0> = Family::new(
    "hlorank_embedding_cache_evictions_total",
    [],
    "Embeddings that were evicted, or did not fit in the cache",
);

const EMBEDDING_BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_embedding_cache_bytes",
    [],
    "Size of the embedding cache in bytes, including keys",
);

const EMBEDDING_MAX_BYTES: Family<Gauge, 0> = Family::new(
    "hlorank_embedding_cache_max_bytes",
    [],
    "Maximum size of the embedding cache in bytes",
);

const EMBEDDING_ENTRIES: Family<Gauge, 0> = Family::new(
    "hlorank_embedding_cache_entries",
    [],
    "Embeddings in the cache",
);

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

/// Metrics of the graph cache.
#[derive(Clone)]
pub struct GraphCacheSeries {
    /// The index by graph hash.
    pub by_hash: CacheSeries,
    /// The index by the source that was sent.
    pub by_source: CacheSeries,
}

impl GraphCacheSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let index = |index| CacheSeries {
            hits: GRAPH_REQUESTS.series(recorder, [index, "hit"]),
            misses: GRAPH_REQUESTS.series(recorder, [index, "miss"]),
            evictions: GRAPH_EVICTIONS.series(recorder, [index]),
            bytes: GRAPH_BYTES.series(recorder, [index]),
            max_bytes: GRAPH_MAX_BYTES.series(recorder, [index]),
            entries: GRAPH_ENTRIES.series(recorder, [index]),
        };
        Self {
            by_hash: index("hash"),
            by_source: index("source"),
        }
    }
}

impl CacheSeries {
    /// Counts a lookup.
    pub fn count(&self, found: bool) {
        let counter = if found { &self.hits } else { &self.misses };
        counter.increment(1);
    }

    /// Returns metrics that are not exported.
    #[must_use]
    pub fn noop() -> Self {
        let counter = Counter::noop();
        let gauge = Gauge::noop();
        Self {
            hits: counter.clone(),
            misses: counter.clone(),
            evictions: counter,
            bytes: gauge.clone(),
            max_bytes: gauge.clone(),
            entries: gauge,
        }
    }

    /// Returns the metrics of the embedding cache.
    pub(super) fn of_embeddings(recorder: &Recorder) -> Self {
        Self {
            hits: EMBEDDING_REQUESTS.series(recorder, ["hit"]),
            misses: EMBEDDING_REQUESTS.series(recorder, ["miss"]),
            evictions: EMBEDDING_EVICTIONS.series(recorder, []),
            bytes: EMBEDDING_BYTES.series(recorder, []),
            max_bytes: EMBEDDING_MAX_BYTES.series(recorder, []),
            entries: EMBEDDING_ENTRIES.series(recorder, []),
        }
    }
}
