//! `PutGraph`: a graph that later calls name by its hash.

use hlorank_graph::NodeDescription;
use hlorank_proto::{
    received::PutGraphRequest,
    v1::{self, ConfigurableNode, GraphSummary, PutGraphResponse},
};

use super::{CostModel, answer::count};
use crate::{call::Call, errors::ServiceError, graphs::GraphOrigin};

impl CostModel {
    pub(super) async fn put(
        &self,
        request: PutGraphRequest,
        call: &Call,
    ) -> Result<PutGraphResponse, ServiceError> {
        let GraphOrigin::Sent(sent) = self.graph(request.graph, None).await? else {
            let hint = "PutGraph takes the graph itself: set hlo_module, hlo_text, features or feature_graph";
            return Err(ServiceError::missing("graph.source", hint));
        };
        let (source, featurize) = self.graphs.read(sent, &call.place).await?;
        call.record.found(&source.graph, featurize);
        // The answer, and the same encoded.
        call.place.hold(2 * source.description_bytes())?;
        let summary = source.graph.summary;
        // Others may share the source by the cache, so its warnings are cloned.
        let warnings = source.warnings.iter().cloned();
        Ok(PutGraphResponse {
            graph_hash: source.graph.hash.0.to_vec().into(),
            summary: Some(GraphSummary {
                nodes: count(summary.nodes),
                edges: count(summary.edges),
                configurable_nodes: count(summary.configurable),
                kept_nodes: count(summary.kept),
                segments: count(summary.segments),
                distinct_segments: count(summary.distinct_segments),
                largest_segment: count(summary.largest_segment),
            }),
            configurable_nodes: source.nodes.iter().map(configurable_node).collect(),
            warnings: warnings.map(v1::Warning::from).collect(),
        })
    }
}

fn configurable_node(node: &NodeDescription) -> ConfigurableNode {
    ConfigurableNode {
        node: node.node,
        name: node.name.clone(),
        opcode: node.opcode.clone(),
        dimensions: node.dimensions.clone(),
        tensor_ranks: node.tensor_ranks.clone(),
    }
}
