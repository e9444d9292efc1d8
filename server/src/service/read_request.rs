//! Reads a request without a server around it.

use hlorank_graph::{Configurations, form, read_form};
use hlorank_proto::v1::RankConfigsRequest;

use super::{ServiceError, batch_request::present, graph_request::read_graph, model::wanted};
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
    let configs = present(request.batch)?;
    let form = form(&configs);
    wanted(&request.model.unwrap_or_default())?;
    let graph = match read_graph(request.graph, Some(form.task()))? {
        GraphOrigin::Hash(hash) => return Err(SessionError::GraphNotCached { hash }.into()),
        GraphOrigin::Sent(graph) => graph,
    };
    graph.check(bounds)?;
    let source = graph.read(&bounds.limits).map_err(SessionError::Graph)?;
    let read = read_form(form, source.graph.task, &source.graph.configurable, &bounds.limits);
    let configurations =
        read.map_err(|source| SessionError::Configuration { field: form.field(), source })?;
    Ok(ReadRequest { source, configurations })
}
