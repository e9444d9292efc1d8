//! A cache of the graphs that clients sent. Concurrent calls with the same graph read it once.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use hlorank_graph::{Digest, KernelMemory, NodeDescription, SegmentedGraph};
use hlorank_proto::v1;
use moka::{future::Cache, notification::RemovalCause, policy::EvictionPolicy};
use parking_lot::Mutex;
use prost::Message as _;

use crate::{
    admission::Place,
    memory::{HeldBytes, MemoryFull},
    metrics::{CacheSeries, CacheSize, GraphCacheSeries, Metrics, set},
};

/// A cache of segmented graphs, bounded in bytes. An eighth is for what is known of the kernels of programs, and an eighth for
/// batches that calls name by digest. One half of the rest is searched by the bytes that were sent, the other by graph hash; a graph in both halves is held once.
pub struct GraphCache {
    kernels: Arc<KernelMemory>,
    by_source: Cache<Digest, Arc<Source>>,
    by_hash: Cache<Digest, Arc<Source>>,
    /// Encoded batches of configurations.
    batches: Cache<Digest, Bytes>,
    series: GraphCacheSeries,
    kernels_size: CacheSize,
    batches_size: CacheSize,
}

/// The kernels of programs may take this fraction of the cache, and batches as much.
const KERNELS_SHARE: u64 = 8;

/// What was read from the bytes that a client sent for a graph. Names are not part of a graph, so two sources of one
/// graph may have different names.
#[derive(Debug)]
pub struct Source {
    /// The graph.
    pub graph: Arc<SegmentedGraph>,
    /// The configurable nodes, in slot order.
    pub nodes: Vec<NodeDescription>,
    /// What was accepted although it is unusual.
    pub warnings: Vec<Warning>,
    /// The message of a program before fusion, which the graph alone does not give back.
    pub program: Option<Arc<v1::Graph>>,
    /// What calls that use it hold together, since it may leave the cache before they end.
    pub(super) in_use: Mutex<Weak<HeldBytes>>,
}

/// Something that was accepted although it is unusual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The reason in `UPPER_SNAKE_CASE`, which is stable.
    pub reason: &'static str,
    /// A message for people.
    pub message: String,
}

impl GraphCache {
    /// A cache of `bytes` bytes.
    pub fn new(bytes: u64, metrics: &Metrics) -> Self {
        let series = metrics.graph_cache.clone();
        let kernels = bytes / KERNELS_SHARE;
        // A graph in both halves is held once but counts in each, so they never take more than the
        // rest.
        let graphs = (bytes - 2 * kernels) / 2;
        Self {
            kernels: KernelMemory::new(usize::try_from(kernels).unwrap_or(usize::MAX)),
            by_hash: half(graphs, &series.by_hash),
            by_source: half(graphs, &series.by_source),
            batches: Cache::builder()
                .max_capacity(kernels)
                .eviction_policy(EvictionPolicy::lru())
                .weigher(|_, batch: &Bytes| weight(batch.len()))
                .build(),
            series,
            kernels_size: metrics.other_caches.kernels.clone(),
            batches_size: metrics.other_caches.batches.clone(),
        }
    }

    /// Sets the gauges to the current state.
    pub async fn sample(&self) {
        let (bytes, limit) = self.kernels.bytes();
        self.kernels_size.set(bytes as u64, limit as u64);
        self.batches.run_pending_tasks().await;
        let limit = self.batches.policy().max_capacity();
        self.batches_size
            .set(self.batches.weighted_size(), limit.unwrap_or_default());
        sample(&self.by_hash, &self.series.by_hash).await;
        sample(&self.by_source, &self.series.by_source).await;
    }

    /// The memory of the kernels of all programs.
    #[must_use]
    pub fn kernels(&self) -> &Arc<KernelMemory> {
        &self.kernels
    }

    /// Returns what was read of the graph with this hash, if it is cached.
    pub async fn get(&self, hash: Digest) -> Option<Arc<Source>> {
        let found = self.by_hash.get(&hash).await;
        self.series.by_hash.count(found.is_some());
        found
    }

    /// Returns the encoded batch with this digest, if it is cached.
    pub async fn batch(&self, digest: Digest) -> Option<Bytes> {
        self.batches.get(&digest).await
    }

    /// Keeps an encoded batch.
    pub async fn keep_batch(&self, digest: Digest, batch: &[u8]) {
        // A copy, because the bytes of a call hold its whole message.
        let copy = async { Bytes::copy_from_slice(batch) };
        self.batches.get_with(digest, copy).await;
    }

    /// Returns the graph for work that no call waits for, which is not counted.
    pub async fn peek(&self, hash: Digest) -> Option<Arc<SegmentedGraph>> {
        let found = self.by_hash.get(&hash).await;
        found.map(|source| Arc::clone(&source.graph))
    }

    /// Returns a source from the cache, or reads it. Concurrent calls for one source read it once. `digest` identifies the
    /// source: its bytes and all that is sent with them.
    pub async fn get_or_read<E: Send + Sync + 'static>(
        &self,
        digest: Digest,
        read: impl Future<Output = Result<Source, E>>,
    ) -> Result<Arc<Source>, Arc<E>> {
        let mut found = true;
        let read = async {
            found = false;
            read.await.map(Arc::new)
        };
        let source = self.by_source.try_get_with(digest, read).await;
        self.series.by_source.count(found);
        let source = source?;
        // The one that is there stays: two sources of one graph may have different names, and calls
        // by hash need none.
        self.by_hash
            .entry(source.graph.hash)
            .or_insert_with(async { Arc::clone(&source) })
            .await;
        Ok(source)
    }
}

impl Source {
    /// Holds its bytes for a call. Calls that use it at the same time hold them once.
    pub(super) fn hold(&self, place: &Place) -> Result<Arc<HeldBytes>, MemoryFull> {
        let mut in_use = self.in_use.lock();
        if let Some(held) = in_use.upgrade() {
            return Ok(held);
        }
        let held = Arc::new(place.hold_beside(self.bytes())?);
        *in_use = Arc::downgrade(&held);
        Ok(held)
    }

    /// Bytes of the descriptions of its nodes.
    pub(crate) fn description_bytes(&self) -> usize {
        let node = |node: &NodeDescription| {
            size_of::<NodeDescription>() + node.name.len() + 16 * node.dimensions.len()
        };
        self.nodes.iter().map(node).sum()
    }

    fn bytes(&self) -> usize {
        let program = self
            .program
            .as_ref()
            .map_or(0, |program| program.encoded_len());
        self.graph.bytes() + self.description_bytes() + program
    }
}

/// A cache of `bytes` bytes.
fn half(bytes: u64, series: &CacheSeries) -> Cache<Digest, Arc<Source>> {
    Cache::builder()
        .max_capacity(bytes)
        // Least recently used, so that a graph is still there when the hash follows that was just
        // returned.
        .eviction_policy(EvictionPolicy::lru())
        .weigher(|_, source: &Arc<Source>| weight(source.bytes()))
        .eviction_listener(count_evictions(series))
        .build()
}

/// Counts evicted entries.
fn count_evictions<T>(
    series: &CacheSeries,
) -> impl Fn(Arc<Digest>, T, RemovalCause) + Send + Sync + 'static {
    let evictions = series.evictions.clone();
    move |_, _, cause| evictions.increment(cause.was_evicted().into())
}

async fn sample<T: Clone + Send + Sync + 'static>(cache: &Cache<Digest, T>, series: &CacheSeries) {
    // The counts lag behind until then.
    cache.run_pending_tasks().await;
    set(&series.entries, cache.entry_count());
    set(&series.bytes, cache.weighted_size());
    set(
        &series.max_bytes,
        cache.policy().max_capacity().unwrap_or_default(),
    );
}

/// Converts a weight in bytes to moka's `u32`.
fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hlorank_graph::{FEATURES, Graph, GraphArrays, Limits, Pad, Task};

    use super::*;

    fn source(opcode: u8) -> Source {
        let arrays = GraphArrays::from_features(
            vec![opcode],
            vec![0.0; FEATURES],
            vec![],
            Pad::Zero,
            &Limits::default(),
        );
        let graph = Graph::new(Task::Tile, arrays.unwrap(), vec![]).unwrap();
        Source {
            graph: Arc::new(SegmentedGraph::new(&graph)),
            nodes: vec![],
            warnings: vec![],
            program: None,
            in_use: Mutex::default(),
        }
    }

    #[tokio::test]
    async fn a_failed_read_is_not_kept() {
        let cache = GraphCache::new(1 << 20, &Metrics::default());
        let read = async |result| cache.get_or_read(Digest([7; 32]), async { result }).await;
        assert_eq!(*read(Err("broken")).await.unwrap_err(), "broken");
        assert!(read(Ok(source(1))).await.is_ok());
    }

    #[tokio::test]
    async fn the_newest_graph_stays_when_the_cache_is_full() {
        let one = source(0).graph.bytes() as u64;
        let cache = GraphCache::new(2 * (one + one / 2), &Metrics::default());
        for opcode in 0..10 {
            let digest = Digest([opcode; 32]);
            let sent = cache
                .get_or_read(digest, async { Ok::<_, Infallible>(source(opcode)) })
                .await
                .unwrap();
            cache.by_hash.run_pending_tasks().await;
            assert!(cache.get(sent.graph.hash).await.is_some(), "graph {opcode}");
        }
        assert!(cache.get(source(0).graph.hash).await.is_none());
    }
}
