//! Traces: files of recorded calls, as `hlorank.v1.TraceRecord` messages, each preceded by its length as a varint.
//!
//! ```no_run
//! # async fn example(client: hlorank_client::Client, request: hlorank_client::RankRequest<'_>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use std::{path::Path, time::Instant};
//!
//! use hlorank_client::trace::{self, TraceWriter};
//!
//! let (path, start) = (Path::new("search.trace"), Instant::now());
//! let mut trace = TraceWriter::create(path)?;
//! trace.write(start.elapsed(), &request)?;                 // before each call
//! client.rank(&request).await?;
//! trace.finish()?;
//! for recorded in trace::read(path)? {
//!     client.make(&recorded.call).await?;
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    num::NonZeroU32,
    path::Path,
    sync::Arc,
    time::Duration,
};

use hlorank_proto::v1::{TraceRecord, TracedCall, trace_record::Record};
use prost::Message as _;

use crate::{GraphHandle, RankCall, RankRequest};

/// A call of a trace.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Time at which the call began, since the start of the trace.
    pub at: Duration,
    /// The call. Calls about one graph share its handle.
    pub call: RankCall,
}

/// The error of a trace that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The file is not a trace, or is truncated.
    #[error("{path}: record {record}, counted from 0: {what}")]
    Broken {
        /// Path of the file.
        path: String,
        /// Number of the record.
        record: usize,
        /// Cause.
        what: String,
    },
}

/// Reads the calls of a trace, in their order.
pub fn read(path: &Path) -> Result<Vec<Recorded>, TraceError> {
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|source| io_error(&name, source))?;
    let mut left = bytes.as_slice();
    let mut trace = Trace::default();
    for record in 0.. {
        if left.is_empty() {
            break;
        }
        let read =
            TraceRecord::decode_length_delimited(&mut left).map_err(|error| error.to_string());
        let added = read.and_then(|read| trace.add(read).map_err(str::to_owned));
        added.map_err(|what| TraceError::Broken {
            path: name.clone(),
            record,
            what,
        })?;
    }
    Ok(trace.calls)
}

/// The part of a trace that has been read.
#[derive(Debug, Default)]
struct Trace {
    graphs: Vec<Arc<GraphHandle>>,
    calls: Vec<Recorded>,
}

impl Trace {
    fn add(&mut self, record: TraceRecord) -> Result<(), &'static str> {
        match record.record.ok_or("it is neither a graph nor a call")? {
            Record::Graph(graph) => {
                let graph = GraphHandle::of_message(graph)
                    .ok_or("the graph is missing, or only its hash is there")?;
                self.graphs.push(Arc::new(graph));
            }
            Record::Call(call) => {
                let recorded = self.recorded(call)?;
                self.calls.push(recorded);
            }
        }
        Ok(())
    }

    fn time(&self, call: &TracedCall) -> Result<Duration, &'static str> {
        let at = call.at.and_then(|at| Duration::try_from(at).ok());
        let at = at.ok_or("the time of the call is missing")?;
        // Whoever repeats the trace waits for the time of one call after the other.
        if self.calls.last().is_some_and(|last| at < last.at) {
            return Err("the call began before the previous one");
        }
        Ok(at)
    }

    fn recorded(&self, call: TracedCall) -> Result<Recorded, &'static str> {
        let at = self.time(&call)?;
        let graph = self
            .graphs
            .get(call.graph as usize)
            .ok_or("the graph of the call does not precede it")?;
        let batch = NonZeroU32::new(call.batch_configs);
        let call = call
            .request
            .and_then(|request| RankCall::of_message(Arc::clone(graph), request));
        let call =
            call.ok_or("the call has no configurations, or configurations of an unknown kind")?;
        Ok(Recorded {
            at,
            call: call.in_batches(batch),
        })
    }
}

/// Writes a trace.
#[derive(Debug)]
pub struct TraceWriter {
    path: String,
    file: BufWriter<File>,
    /// Numbers of the graphs that were written, by route key.
    graphs: HashMap<Vec<u8>, u32>,
}

impl TraceWriter {
    /// Creates a trace. An existing file is replaced.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|source| io_error(&name, source))?;
        Ok(Self {
            path: name,
            file: BufWriter::new(file),
            graphs: HashMap::new(),
        })
    }

    /// Adds a unary call that begins at this time since the start of the trace, and its graph if that is new.
    pub fn write(&mut self, at: Duration, request: &RankRequest<'_>) -> Result<(), TraceError> {
        self.write_in_batches(at, request, None)
    }

    /// Adds a call, which may be a stream.
    pub fn write_call(&mut self, at: Duration, call: &RankCall) -> Result<(), TraceError> {
        self.write_in_batches(at, &call.request(), call.batch())
    }

    fn write_in_batches(
        &mut self,
        at: Duration,
        request: &RankRequest<'_>,
        batch: Option<NonZeroU32>,
    ) -> Result<(), TraceError> {
        // A reader needs the graph before the calls about it.
        let graph = self.number(request.graph)?;
        let at = at
            .try_into()
            .map_err(|_| self.broken("the time of the call is too large"))?;
        self.put(Record::Call(TracedCall {
            at: Some(at),
            graph,
            request: Some(request.message()),
            batch_configs: batch.map_or(0, NonZeroU32::get),
        }))
    }

    /// Returns the number of a graph, and writes the graph if it is new.
    fn number(&mut self, graph: &GraphHandle) -> Result<u32, TraceError> {
        // Route keys are digests of what is sent, so two graphs with one key are the same graph.
        if let Some(number) = self.graphs.get(graph.route().as_bytes()) {
            return Ok(*number);
        }
        let number = u32::try_from(self.graphs.len());
        let number = number.map_err(|_| self.broken("the trace has too many graphs"))?;
        self.put(Record::Graph(graph.whole()))?;
        self.graphs
            .insert(graph.route().as_bytes().to_vec(), number);
        Ok(number)
    }

    /// Writes the buffered rest of the trace.
    pub fn finish(mut self) -> Result<(), TraceError> {
        let flushed = self.file.flush();
        flushed.map_err(|source| io_error(&self.path, source))
    }

    fn put(&mut self, record: Record) -> Result<(), TraceError> {
        let bytes = TraceRecord {
            record: Some(record),
        }
        .encode_length_delimited_to_vec();
        let written = self.file.write_all(&bytes);
        written.map_err(|source| io_error(&self.path, source))
    }

    fn broken(&self, what: &str) -> TraceError {
        io_error(&self.path, io::Error::other(what))
    }
}

fn io_error(path: &str, source: io::Error) -> TraceError {
    TraceError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Configurations, Limits, Task, TileBatch, TileConfiguration};

    use super::*;

    fn tiles(count: i64) -> Configurations {
        let mut batch = TileBatch::default();
        for size in 1..=count {
            let tile = TileConfiguration {
                kernel_bounds: &[],
                output_bounds: &[size],
                input_bounds: &[],
            };
            batch.push(tile, &Limits::default()).unwrap();
        }
        Configurations::Tile(batch)
    }

    fn trace() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        (folder, path)
    }

    #[test]
    fn calls_are_read_as_they_were_written_and_each_graph_once() {
        let (_folder, path) = trace();
        let graphs = [b"one", b"two"]
            .map(|bytes| GraphHandle::hlo_module(bytes.to_vec(), Task::Tile, vec![]));
        let mut writer = TraceWriter::create(&path).unwrap();
        for (milliseconds, graph, count) in [(0, 0, 1), (5, 1, 2), (9, 0, 3)] {
            let configurations = tiles(count);
            let request = RankRequest::new(&graphs[graph], &configurations)
                .top(4)
                .with_scores();
            writer
                .write(Duration::from_millis(milliseconds), &request)
                .unwrap();
        }
        writer.finish().unwrap();
        let calls = read(&path).unwrap();
        assert_eq!(
            calls
                .iter()
                .map(|call| call.at.as_millis())
                .collect::<Vec<_>>(),
            [0, 5, 9]
        );
        assert_eq!(
            calls
                .iter()
                .map(|call| call.call.configurations())
                .collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert!(Arc::ptr_eq(calls[0].call.graph(), calls[2].call.graph()));
        for (call, graph) in calls.iter().zip([0, 1, 0]) {
            assert_eq!(call.call.graph().route(), graphs[graph].route());
            assert_eq!(call.call.graph().whole(), graphs[graph].whole());
        }
        let request = RankRequest::new(&graphs[1], &tiles(2)).top(4).with_scores();
        assert_eq!(calls[1].call.request().message(), request.message());
    }

    #[test]
    fn the_error_of_a_truncated_trace_names_the_record() {
        let (_folder, path) = trace();
        let graph = GraphHandle::hlo_module(b"one".to_vec(), Task::Tile, vec![]);
        let mut writer = TraceWriter::create(&path).unwrap();
        writer
            .write(Duration::ZERO, &RankRequest::new(&graph, &tiles(3)))
            .unwrap();
        writer.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("a.trace: record 1, counted from 0: "),
            "{error}"
        );
    }

    #[test]
    fn a_call_before_its_graph_or_before_the_previous_call_is_an_error() {
        let graph = GraphHandle::hlo_module(b"one".to_vec(), Task::Tile, vec![]);
        let call = |seconds, graph_number| {
            let at = Duration::from_secs(seconds).try_into().ok();
            let request = Some(RankRequest::new(&graph, &tiles(1)).message());
            TraceRecord {
                record: Some(Record::Call(TracedCall {
                    at,
                    graph: graph_number,
                    request,
                    batch_configs: 0,
                })),
            }
        };
        let mut trace = Trace::default();
        assert_eq!(
            trace.add(call(1, 0)),
            Err("the graph of the call does not precede it")
        );
        trace
            .add(TraceRecord {
                record: Some(Record::Graph(graph.whole())),
            })
            .unwrap();
        trace.add(call(1, 0)).unwrap();
        assert_eq!(
            trace.add(call(0, 0)),
            Err("the call began before the previous one")
        );
        assert_eq!(
            trace.add(TraceRecord { record: None }),
            Err("it is neither a graph nor a call")
        );
    }
}
