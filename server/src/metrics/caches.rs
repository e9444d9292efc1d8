use metrics::{Counter, Gauge};

use super::{Family, Recorder};

const GRAPH_REQUESTS: Family<Counter, 2> = Family::new(
    "hlorank_graph_cache_requests_total",
    ["index", "result"],
    "Graphs that calls asked for, by hash or by the source that was sent; a miss of a source reads it, and a call \
     that waits for another's reading hits",
);

const GRAPH_EVICTIONS: Family<Counter, 1> = Family::new(
    "hlorank_graph_cache_evictions_total",
    ["index"],
    "Entries of the graph cache that gave way to others",
);

const GRAPH_BYTES: Family<Gauge, 1> = Family::new(
    "hlorank_graph_cache_bytes",
    ["index"],
    "Bytes of the graph cache; a graph in both indexes is held once and counts in both",
);

const GRAPH_MAX_BYTES: Family<Gauge, 1> =
    Family::new("hlorank_graph_cache_max_bytes", ["index"], "Bytes that the graph cache may take");

const GRAPH_ENTRIES: Family<Gauge, 1> =
    Family::new("hlorank_graph_cache_entries", ["index"], "Graphs by hash, and sources that clients sent");

const EMBEDDING_REQUESTS: Family<Counter, 1> = Family::new(
    "hlorank_embedding_cache_requests_total",
    ["result"],
    "Distinct rows that were looked up; a miss is evaluated, here or for another call that waits for it already",
);

const EMBEDDING_EVICTIONS: Family<Counter, 0> = Family::new(
    "hlorank_embedding_cache_evictions_total",
    [],
    "Embeddings that gave way to others, or found no room",
);

const EMBEDDING_BYTES: Family<Gauge, 0> =
    Family::new("hlorank_embedding_cache_bytes", [], "Bytes of the embeddings in the cache, with their keys");

const EMBEDDING_MAX_BYTES: Family<Gauge, 0> =
    Family::new("hlorank_embedding_cache_max_bytes", [], "Bytes that the embedding cache may take");

const EMBEDDING_ENTRIES: Family<Gauge, 0> =
    Family::new("hlorank_embedding_cache_entries", [], "Embeddings in the cache");

/// What is counted of a cache, or of one index of it.
#[derive(Clone)]
pub struct CacheSeries {
    /// Found.
    pub hits: Counter,
    /// Not found.
    pub misses: Counter,
    /// Gave way.
    pub evictions: Counter,
    /// In use.
    pub bytes: Gauge,
    /// At most in use.
    pub max_bytes: Gauge,
    /// What there is.
    pub entries: Gauge,
}

/// The graph cache.
#[derive(Clone)]
pub struct GraphCacheSeries {
    /// Found by graph hash.
    pub by_hash: CacheSeries,
    /// Found by what was sent.
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
        Self { by_hash: index("hash"), by_source: index("source") }
    }
}

impl CacheSeries {
    /// Counts a lookup.
    pub fn count(&self, found: bool) {
        let counter = if found { &self.hits } else { &self.misses };
        counter.increment(1);
    }

    /// Of a cache that nobody watches.
    #[must_use]
    pub fn noop() -> Self {
        let (counter, gauge) = (Counter::noop(), Gauge::noop());
        Self {
            hits: counter.clone(),
            misses: counter.clone(),
            evictions: counter,
            bytes: gauge.clone(),
            max_bytes: gauge.clone(),
            entries: gauge,
        }
    }

    /// Of the embedding cache.
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
