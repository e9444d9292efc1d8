use std::{
    io::{Read as _, Write as _},
    sync::Arc,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use hlorank_graph::{
    ConfigurationError, Configurations, Digest, Graph, KernelMemory, Limits, SegmentedGraph, Task,
    decode_graph,
};
use hlorank_proto::v1;
use prost::Message as _;

use crate::{
    call::{Call, CallError, REPORT, SentMeasurements, read_batch},
    compute::{Class, ComputePool},
    engine::Engine,
    graphs::{FoundGraph, GraphContent, Graphs, SentGraph},
    memory::{HeldBytes, Memory},
    searches::Searches,
    store::{
        GraphKind, KeptGraph, MAX_GRAPH_BYTES, Measurement, MeasurementStore, ReportOutcome,
        Reporter, ReporterFilter, StoreError, Subject, config_digest,
    },
};

/// The measurements that clients reported, if the server keeps them, and what their graphs and scores need.
pub(crate) struct StoredMeasurements {
    store: Option<Arc<MeasurementStore>>,
    pub(super) engine: Arc<Engine>,
    pub(super) graphs: Arc<Graphs>,
    pub(super) limits: Limits,
    pub(crate) searches: Searches,
}

/// Bytes of a measurement beside its configuration: key, record and what the file's pages add.
const MEASUREMENT_BYTES: usize = 1 << 10;

/// Maximum number of bytes of an entry of a layout: as it is kept, in a batch and to learn from.
const ENTRY_BYTES: usize = 40;

/// The same for a column of a node: as it is kept, and twice in lists that grow by doubling while a batch is read.
const COLUMN_BYTES: usize = 6 * size_of::<f32>();

impl StoredMeasurements {
    /// Keeps measurements in a store, if there is one.
    pub(crate) fn new(
        store: Option<Arc<MeasurementStore>>,
        engine: Arc<Engine>,
        graphs: Arc<Graphs>,
        limits: Limits,
    ) -> Self {
        Self {
            store,
            engine,
            graphs,
            limits,
            searches: Searches::default(),
        }
    }

    /// The store, if the server has one.
    pub(crate) fn store(&self) -> Result<&Arc<MeasurementStore>, StoreError> {
        self.store.as_ref().ok_or(StoreError::Off)
    }

    /// The threads that compute.
    pub(crate) fn pool(&self) -> &Arc<ComputePool> {
        self.engine.pool()
    }

    /// Draws at most `count` stored measurements of a graph, those of a configuration one after the other. `hold` is called with
    /// the bytes of each page of them.
    pub(crate) async fn draw(
        &self,
        subject: &Subject,
        graph: &SegmentedGraph,
        whose: &ReporterFilter,
        count: usize,
        mut hold: impl FnMut(usize) -> Result<(), CallError>,
    ) -> Result<Vec<Measurement>, CallError> {
        let store = self.store()?;
        let mut keys = store.draw(subject, whose, count).await?;
        keys.sort_unstable();
        let mut measurements = Vec::with_capacity(keys.len());
        let mut left = keys.as_slice();
        while !left.is_empty() {
            let (page, read) = store.read(left).await?;
            hold(page_bytes(graph, &page))?;
            measurements.extend(page);
            left = &left[read..];
        }
        Ok(measurements)
    }
}

/// Bytes that measurements of a graph take once they are read.
fn page_bytes(graph: &SegmentedGraph, page: &[Measurement]) -> usize {
    // Canonical configurations of a feature set have 4 bytes for each column of each node.
    let longest = page.iter().map(|each| each.config.len()).max();
    let columns = longest.map(|bytes| bytes / (4 * graph.slots().max(1)));
    let columns = columns.filter(|_| graph.task == Task::FeatureSet);
    measurement_bytes(graph, columns, page.len())
}

/// Bytes of measurements of a graph whose configurations have this many columns of a feature set.
pub(crate) fn measurement_bytes(
    graph: &SegmentedGraph,
    columns: Option<usize>,
    measurements: usize,
) -> usize {
    let slot_bytes = columns.map_or(ENTRY_BYTES, |columns| columns.saturating_mul(COLUMN_BYTES));
    // A hostile number of columns gives the largest number of bytes, which is refused, and no
    // overflow.
    measurements.saturating_mul(
        graph
            .slots()
            .saturating_mul(slot_bytes)
            .saturating_add(MEASUREMENT_BYTES),
    )
}

/// Reads stored configurations of a graph from their canonical bytes, and checks them against the graph.
pub(crate) fn read_canonical(
    graph: &SegmentedGraph,
    configs: &[&[u8]],
) -> Result<Configurations, ConfigurationError> {
    let configs = configs.iter().copied();
    let read = Configurations::from_canonical(graph.task, configs, &Limits::default())?;
    read.check(&graph.whole)?;
    Ok(read)
}

/// Bytes that keeping a graph takes meanwhile: its message, and the same compressed.
fn kept_bytes(graph: &Graph) -> usize {
    2 * graph.bytes()
}

/// Returns a graph for the store; nothing if its message is too large. `program` is the message of a program before fusion,
/// whose kernels need the module.
fn keep(
    graph: &Graph,
    program: Option<&v1::Graph>,
    reporter: Reporter,
) -> Result<Option<KeptGraph>, CallError> {
    let message = program.cloned().or_else(|| graph.to_message());
    let message = message.ok_or_else(|| CallError::GraphNotCached { hash: graph.hash() })?;
    if message.encoded_len() > MAX_GRAPH_BYTES {
        return Ok(None);
    }
    // Columns of features are mostly zeros, so more effort gains little.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(&message.encode_to_vec());
    let compressed = written.and_then(|()| encoder.finish());
    Ok(Some(KeptGraph {
        kind: GraphKind {
            task: graph.task(),
            structure: graph.structure(),
            reporter,
        },
        message: compressed.map_err(|error| failed(&error))?,
    }))
}

/// Bytes of the message of a graph of the store once it is decompressed: gzip ends with them, and no more than was ever kept.
pub(super) fn message_bytes(kept: &KeptGraph) -> usize {
    let claimed = kept
        .message
        .last_chunk()
        .copied()
        .map_or(0, u32::from_le_bytes);
    (claimed as usize).min(MAX_GRAPH_BYTES)
}

/// Returns the message of a graph of the store.
pub(super) fn message_of(kept: &KeptGraph, limits: &Limits) -> Result<v1::Graph, CallError> {
    // A broken or hostile file may decompress to anything, so that no more is read than was held.
    let mut message = Vec::new();
    let read = GzDecoder::new(&*kept.message)
        .take(message_bytes(kept) as u64)
        .read_to_end(&mut message);
    read.map_err(|error| failed(&error))?;
    decode_graph(message.into(), limits).map_err(CallError::Graph)
}

/// Reads a graph of the store, which has to have this hash.
pub(super) fn graph_of(
    kept: &KeptGraph,
    hash: Digest,
    limits: &Limits,
    kernels: &Arc<KernelMemory>,
    memory: &Arc<Memory>,
) -> Result<(Arc<SegmentedGraph>, HeldBytes), CallError> {
    let _held = memory.hold(message_bytes(kept))?;
    let message = message_of(kept, limits)?;
    let content = message
        .source
        .and_then(|source| GraphContent::from_message(source).ok());
    // As if a call sent it.
    let sent = SentGraph {
        content: content.ok_or_else(|| failed(&"a kept graph has no content"))?,
        task: kept.kind.task,
        configurable: message.configurable_nodes,
    };
    let (read, mut held) = sent.read(limits, kernels, |bytes| memory.hold(bytes))?;
    // Measurements of another graph would be learned from as if they were of this one.
    if read.graph.hash != hash {
        return Err(failed(&"a kept graph has another hash"));
    }
    held.shrink_to(read.graph.bytes());
    Ok((read.graph, held))
}

fn failed(detail: &dyn ToString) -> CallError {
    StoreError::Failed(detail.to_string()).into()
}

impl StoredMeasurements {
    /// Keeps measurements of one machine, each with the time when it was reported, and their graph with the first of them. Returns, once they
    /// are on disk, what came of them and the digests of their configurations.
    pub(crate) async fn report(
        &self,
        call: &Call,
        found: &FoundGraph,
        sent: SentMeasurements,
        reporter: Reporter,
        reported_at: Vec<u64>,
        machine: String,
    ) -> Result<(ReportOutcome, Vec<Digest>), CallError> {
        let store = self.store()?;
        let graph = Arc::clone(&found.graph);
        let limits = self.limits;
        let subject = Subject {
            target: sent.target,
            graph: graph.hash,
        };
        let batch = sent.batch.ok_or(CallError::Configuration {
            field: REPORT.batch,
            source: ConfigurationError::Empty,
        })?;
        // What reading and keeping them takes is held before either begins.
        let read_bytes = batch.read_bytes(graph.slots(), &limits);
        let kept_bytes = measurement_bytes(&graph, batch.columns(), batch.count());
        call.place.hold(read_bytes + kept_bytes)?;
        let outcomes = sent.outcomes.into_iter().zip(sent.ids).enumerate();
        let by = reporter.clone();
        let read = move |_| {
            let configurations = read_batch(&batch, &graph, &limits, REPORT.batch)?;
            let measurements = outcomes.map(|(config, (outcome, id))| Measurement {
                task: graph.task,
                config: configurations.canonical(config),
                id,
                outcome,
                reporter: by.clone(),
                reported_at: reported_at[config],
                machine: machine.clone(),
            });
            let measurements: Vec<Measurement> = measurements.collect();
            let configs = measurements.iter().map(|each| config_digest(&each.config));
            let configs: Vec<Digest> = configs.collect();
            Ok::<_, CallError>((measurements, configs))
        };
        let (measurements, configs) = self.pool().run(Class::Bulk, read).await?.value?;
        // The graph is compressed with the first report alone. Two first ones at once keep equal
        // graphs.
        let kept = if store.has_graph(subject.clone()).await? {
            None
        } else {
            self.graph_to_keep(call, found, reporter).await?
        };
        let outcome = store.report(subject.clone(), &measurements, kept).await?;
        if outcome.accepted > 0 {
            self.searches
                .add(&subject, &found.graph.whole, &measurements);
        }
        Ok((outcome, configs))
    }

    /// Returns a graph for the store; nothing if its message is too large.
    async fn graph_to_keep(
        &self,
        call: &Call,
        found: &FoundGraph,
        reporter: Reporter,
    ) -> Result<Option<KeptGraph>, CallError> {
        let graph = Arc::clone(&found.graph);
        let program = found.program.clone();
        call.place.hold(kept_bytes(&graph.whole))?;
        let keep = move |_| keep(&graph.whole, program.as_deref(), reporter);
        self.pool().run(Class::Bulk, keep).await?.value
    }
}
