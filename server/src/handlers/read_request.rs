//! Reads a request without a server around it.

use bytes::Bytes;
use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, KernelMemory, Limits, Task, decode_graph,
};
use hlorank_proto::received::{Adapt, RankConfigsRequest};

use super::request::{
    check_target, graph_origin, present_batch, present_graph, take_times, wanted_version,
};
use crate::{
    call::{ADAPT, Bounds, CallError, SentMeasurements, read_batch},
    errors::ServiceError,
    graphs::{GraphOrigin, Source},
};

/// What a request holds.
pub struct ReadRequest {
    /// The graph.
    pub source: Source,
    /// Its configurations.
    pub configurations: Configurations,
}

/// Reads and checks a request with the steps of `RankConfigs` up to scoring, for tests of these steps on arbitrary bytes.
/// Nothing is cached, so the hash of a graph is always unknown.
pub fn read_request(
    request: RankConfigsRequest,
    bounds: &Bounds,
) -> Result<ReadRequest, ServiceError> {
    let batch = encoded(&request.batch.unwrap_or_default(), "batch")?;
    let batch = present_batch(batch)?;
    // There is no registry here that a model could be selected from.
    wanted_version(&request.model.unwrap_or_default())?;
    let source = read_source(request.graph, batch.task(), bounds)?;
    let graph = &source.graph;
    let read = batch.read(graph.task, &graph.configurable, &bounds.limits);
    let configurations = read.map_err(|source| refused(batch.field(), source))?;
    if let Some(adapt) = request.adapt {
        read_adapt(adapt, &source, &bounds.limits)?;
    }
    Ok(ReadRequest {
        source,
        configurations,
    })
}

/// Reads and checks the graph of a request for a task.
fn read_source(graph: Option<Bytes>, task: Task, bounds: &Bounds) -> Result<Source, ServiceError> {
    let graph = decode_graph(present_graph(graph)?, &bounds.limits)?;
    let graph = match graph_origin(graph, Some(task))? {
        GraphOrigin::Hash(hash) => return Err(CallError::GraphNotCached { hash }.into()),
        GraphOrigin::Sent(graph) => graph,
    };
    graph.check(bounds)?;
    Ok(graph.read(&bounds.limits, &KernelMemory::new(0))?)
}

fn encoded(batch: &Bytes, field: &'static str) -> Result<Option<EncodedBatch>, CallError> {
    EncodedBatch::of(batch).map_err(|source| refused(field, source))
}

fn refused(field: &'static str, source: ConfigurationError) -> CallError {
    CallError::Configuration { field, source }
}

/// Reads and checks measurements up to learning.
fn read_adapt(mut adapt: Adapt, source: &Source, limits: &Limits) -> Result<(), ServiceError> {
    let times = take_times(&mut adapt);
    check_target(ADAPT.target, &adapt.target)?;
    let batch = adapt.batch.map(|batch| encoded(&batch, ADAPT.batch));
    let batch = batch.transpose()?.flatten();
    SentMeasurements::new(&ADAPT, adapt.target, batch.clone(), &times)?;
    if let Some(batch) = batch {
        read_batch(&batch, &source.graph, limits, ADAPT.batch)?;
    }
    Ok(())
}
