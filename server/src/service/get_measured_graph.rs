//! `GetMeasuredGraph`: the graph of stored measurements.

use hlorank_proto::v1::{GetMeasuredGraphRequest, GetMeasuredGraphResponse};

use super::{CostModel, ServiceError, adapt_request::check_target, graph_request::read_hash};
use crate::store::Subject;

impl CostModel {
    pub(super) async fn measured_graph(
        &self,
        request: GetMeasuredGraphRequest,
    ) -> Result<GetMeasuredGraphResponse, ServiceError> {
        check_target("target", &request.target)?;
        let graph = read_hash("graph_hash", &request.graph_hash)?;
        let subject = Subject {
            target: request.target,
            graph,
        };
        let kept = self.stored.kept_graph(subject).await?;
        Ok(GetMeasuredGraphResponse {
            graph: kept.map(|(graph, _)| graph),
        })
    }
}
