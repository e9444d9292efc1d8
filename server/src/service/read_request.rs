//! Reads a request without a server around it.

use hlorank_graph::{Configurations, EncodedBatch, decode_graph};
use hlorank_proto::received::RankConfigsRequest;

use super::{ServiceError, batch_request, graph_request, model::wanted};
use crate::{
    graphs::Source,
    session::{Bounds, GraphOrigin, SessionError},
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
pub fn read_request(request: RankConfigsRequest, bounds: &Bounds) -> Result<ReadRequest, ServiceError> {
    let batch = EncodedBatch::of(&request.batch.unwrap_or_default());
    let batch = batch.map_err(|source| SessionError::Configuration { field: "batch", source })?;
    let batch = batch_request::present(batch)?;
    wanted(&request.model.unwrap_or_default())?;
    let graph = decode_graph(graph_request::present(request.graph)?, &bounds.limits);
    let graph = match graph_request::origin(graph.map_err(SessionError::Graph)?, Some(batch.task()))? {
        GraphOrigin::Hash(hash) => return Err(SessionError::GraphNotCached { hash }.into()),
        GraphOrigin::Sent(graph) => graph,
    };
    graph.check(bounds)?;
    let source = graph.read(&bounds.limits).map_err(SessionError::Graph)?;
    let read = batch.read(source.graph.task, &source.graph.configurable, &bounds.limits);
    let configurations =
        read.map_err(|source| SessionError::Configuration { field: batch.field(), source })?;
    Ok(ReadRequest { source, configurations })
}
