//! `PutGraph`: a graph that later calls name by its hash.

use hlorank_proto::{
    received::PutGraphRequest,
    v1::{self, PutGraphResponse},
};

use super::{
    CostModel,
    answer::{configurable_node, summary},
};
use crate::{
    errors::ServiceError,
    graphs::{GraphOrigin, Source},
    telemetry::CallRecord,
};

impl CostModel {
    pub(super) async fn put(
        &self,
        request: PutGraphRequest,
        record: &CallRecord,
    ) -> Result<PutGraphResponse, ServiceError> {
        let GraphOrigin::Sent(sent) = self.graph(request.graph, None).await? else {
            let hint = "PutGraph takes the graph itself: set hlo_module, hlo_text, features or feature_graph";
            return Err(ServiceError::missing("graph.source", hint));
        };
        let (source, featurize) = self.graphs.read(sent).await?;
        record.found(&source.graph, featurize);
        Ok(response(&source))
    }
}

fn response(source: &Source) -> PutGraphResponse {
    // Others may share the source by the cache, so its warnings are cloned.
    let warnings = source.warnings.iter().cloned();
    PutGraphResponse {
        graph_hash: source.graph.hash.0.to_vec().into(),
        summary: Some(summary(&source.graph)),
        configurable_nodes: source.nodes.iter().map(configurable_node).collect(),
        warnings: warnings.map(v1::Warning::from).collect(),
    }
}
