use std::sync::Arc;

use hlorank_graph::Digest;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter, sync::Cache};

use super::call::RowKey;
use crate::metrics::{CacheSeries, CacheSize, set};

/// The embeddings that calls evaluated, and what models computed of segments alone.
// The cache of graphs is moka's, because calls that want one graph wait for one read of it. Here workers look up every row of
// every call, and wait for none: a lookup in moka takes five times as long.
pub(crate) struct EmbeddingCache {
    cache: Cache<RowKey, Arc<[f32]>, RowWeight, DefaultHashBuilder, CountEvictions>,
    segments: Cache<RowKey, Arc<[f32]>, RowWeight>,
    series: CacheSeries,
}

/// The sizes of the two caches of an engine, in bytes. A cache of 0 bytes keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheBytes {
    /// Maximum size of the cache of embeddings.
    pub embeddings: u64,
    /// Maximum size of the cache of segment tensors, which the first part of an encoder computes once for each segment.
    pub segments: u64,
}

/// Bytes of a cache entry beside its numbers: key, pointer, reference counts and the cache's own lists.
const ENTRY_BYTES: usize = 128;

/// Bytes of an entry with an embedding of 64 numbers.
const TYPICAL_ENTRY_BYTES: usize = ENTRY_BYTES + 64 * size_of::<f32>();

/// Bytes of the tensors of a small segment.
const TYPICAL_SEGMENT_BYTES: u64 = 8192;

#[derive(Clone)]
struct RowWeight;

impl Weighter<RowKey, Arc<[f32]>> for RowWeight {
    fn weight(&self, _: &RowKey, embedding: &Arc<[f32]>) -> u64 {
        (ENTRY_BYTES + size_of_val(&**embedding)) as u64
    }
}

/// Counts the entries that the cache evicts.
#[derive(Clone)]
struct CountEvictions;

impl Lifecycle<RowKey, Arc<[f32]>> for CountEvictions {
    type RequestState = u64;

    fn on_evict(&self, evicted: &mut u64, _: RowKey, _: Arc<[f32]>) {
        *evicted += 1;
    }
}

impl EmbeddingCache {
    /// Two empty caches of at most these sizes.
    pub(crate) fn new(bytes: CacheBytes, series: CacheSeries) -> Self {
        // The numbers of entries are estimates, by which the tables are sized; the limits are in
        // bytes.
        let entries = usize::try_from(bytes.embeddings).unwrap_or(usize::MAX) / TYPICAL_ENTRY_BYTES;
        let segments = usize::try_from(bytes.segments / TYPICAL_SEGMENT_BYTES);
        let hasher = DefaultHashBuilder::default();
        Self {
            cache: Cache::with(entries, bytes.embeddings, RowWeight, hasher, CountEvictions),
            segments: Cache::with_weighter(
                segments.unwrap_or(usize::MAX),
                bytes.segments,
                RowWeight,
            ),
            series,
        }
    }

    pub(super) fn get(&self, key: &RowKey) -> Option<Arc<[f32]>> {
        self.cache.get(key)
    }

    /// What [`Self::insert_segment`] inserted.
    pub(super) fn segment(&self, key: &RowKey) -> Option<Arc<[f32]>> {
        self.segments.get(key)
    }

    /// Keeps what a model computed of a segment alone.
    pub(super) fn insert_segment(&self, key: RowKey, values: &Arc<[f32]>) {
        self.segments.insert(key, Arc::clone(values));
    }

    /// Counts rows that were looked up, and how many of them were missing.
    pub(super) fn looked_up(&self, rows: usize, missing: usize) {
        self.series.misses.increment(missing as u64);
        self.series.hits.increment((rows - missing) as u64);
    }

    pub(super) fn insert<'a>(
        &self,
        embeddings: impl Iterator<Item = (&'a RowKey, &'a Arc<[f32]>)>,
    ) {
        let mut evicted = 0;
        for (key, embedding) in embeddings {
            self.cache
                .insert_with_lifecycle(*key, Arc::clone(embedding), &mut evicted);
        }
        self.series.evictions.increment(evicted);
    }

    /// Drops what a model computed. Blocks under way may put entries back, so no call should use the model any more.
    pub(crate) fn forget(&self, model: Digest) {
        // One by one: `retain` would keep requests waiting for all of a shard.
        for (key, _) in self.cache.iter().filter(|(key, _)| key.model == model) {
            self.cache.remove(&key);
        }
        for (key, _) in self.segments.iter().filter(|(key, _)| key.model == model) {
            self.segments.remove(&key);
        }
    }

    /// Sets the gauges to the current state.
    pub(super) fn sample(&self, segments: &CacheSize) {
        segments.set(self.segments.weight(), self.segments.capacity());
        set(&self.series.entries, self.cache.len() as u64);
        set(&self.series.bytes, self.cache.weight());
        set(&self.series.max_bytes, self.cache.capacity());
    }
}
