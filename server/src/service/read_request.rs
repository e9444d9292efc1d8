//! Reads a request without a server around it.

use hlorank_graph::{Configurations, form};
use hlorank_proto::v1::RankConfigsRequest;

use super::{
    Bounds, ServiceError,
    configs_request::{present, read_configs},
    graph_request::GraphOrigin,
    model::wanted,
};
use crate::graphs::Source;

/// What came of the bytes of a request.
pub struct ReadRequest {
    /// The graph.
    pub source: Source,
    /// Its configurations.
    pub configurations: Configurations,
}

/// Reads and checks a request with the steps of `RankConfigs`, up to where a model would score: for whoever holds
/// them to their promises on any bytes. Nothing is cached, so the hash of a graph is always unknown.
pub fn read_request(request: RankConfigsRequest, bounds: &Bounds) -> Result<ReadRequest, ServiceError> {
    let configs = present(request.batch)?;
    let task = form(&configs).task();
    wanted(&request.model.unwrap_or_default())?;
    let graph = match GraphOrigin::read(request.graph, Some(task))? {
        GraphOrigin::Hash(hash) => return Err(ServiceError::GraphNotCached { hash }),
        GraphOrigin::Sent(graph) => graph,
    };
    graph.check(bounds.graph_bytes, &bounds.limits)?;
    let source = graph.segmented(&bounds.limits).map_err(ServiceError::Graph)?;
    let configurations = read_configs(&configs, &source.graph, &bounds.limits)?;
    Ok(ReadRequest { source, configurations })
}
