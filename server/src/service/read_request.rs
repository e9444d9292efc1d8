//! Reads a request without a server around it.

use hlorank_graph::{ConfigurationError, Configurations, EncodedBatch, decode_graph};
use hlorank_proto::received::{Adapt, RankConfigsRequest};

use super::{
    ServiceError, adapt_request::check_measurements, batch_request, graph_request,
    model_selector::wanted,
};
use crate::{
    call::{ADAPT, Bounds, CallError, SentMeasurements, SentTimes, read_batch},
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
    let batch = EncodedBatch::of(&request.batch.unwrap_or_default());
    let batch = batch.map_err(|source| refused("batch", source))?;
    let batch = batch_request::present(batch)?;
    wanted(&request.model.unwrap_or_default())?;
    let graph = decode_graph(graph_request::present(request.graph)?, &bounds.limits);
    let graph = graph.map_err(CallError::Graph)?;
    let graph = match graph_request::origin(graph, Some(batch.task()))? {
        GraphOrigin::Hash(hash) => return Err(CallError::GraphNotCached { hash }.into()),
        GraphOrigin::Sent(graph) => graph,
    };
    graph.check(bounds)?;
    let source = graph.read(&bounds.limits).map_err(CallError::Graph)?;
    let graph = &source.graph;
    let read = batch.read(graph.task, &graph.configurable, &bounds.limits);
    let configurations = read.map_err(|source| refused(batch.field(), source))?;
    if let Some(adapt) = request.adapt {
        read_adapt(adapt, &source, bounds)?;
    }
    Ok(ReadRequest {
        source,
        configurations,
    })
}

fn refused(field: &'static str, source: ConfigurationError) -> CallError {
    CallError::Configuration { field, source }
}

/// Reads and checks measurements up to learning.
fn read_adapt(adapt: Adapt, source: &Source, bounds: &Bounds) -> Result<(), ServiceError> {
    let times = SentTimes {
        seconds: adapt.seconds,
        repeats: adapt.repeats,
        failures: adapt.failures,
        ids: adapt.ids,
    };
    check_measurements(&ADAPT, &adapt.target, &times)?;
    let batch = adapt.batch.map(|batch| EncodedBatch::of(&batch));
    let batch = batch.transpose().map(Option::flatten);
    let batch = batch.map_err(|source| refused(ADAPT.batch, source))?;
    let sent = SentMeasurements::new(&ADAPT, adapt.target, batch.clone(), &times);
    sent.map_err(CallError::from)?;
    if let Some(batch) = batch {
        read_batch(&batch, &source.graph, &bounds.limits, ADAPT.batch)?;
    }
    Ok(())
}
