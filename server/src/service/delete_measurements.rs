//! `DeleteMeasurements`: deletes stored measurements.

use hlorank_proto::v1::{DeleteMeasurementsRequest, DeleteMeasurementsResponse};

use super::{CostModel, ServiceError, adapt_request::check_target, graph_request::read_filter};
use crate::{
    call::CallError,
    store::{Chosen, Reporter},
};

impl CostModel {
    pub(super) async fn delete(
        &self,
        request: DeleteMeasurementsRequest,
    ) -> Result<DeleteMeasurementsResponse, ServiceError> {
        let store = self.stored.store().map_err(CallError::from)?;
        let target = request.target;
        let reporter = Reporter::named(&request.reporter);
        // All targets are never deleted by mistake.
        if reporter.is_none() || !target.is_empty() {
            check_target("target", &target)?;
        }
        let graph = read_filter(&target, &request.graph_hash)?;
        let chosen = Chosen {
            target: Some(target).filter(|target| !target.is_empty()),
            graph,
            reporter,
        };
        let deleted = store.delete(&chosen).await.map_err(CallError::from)?;
        Ok(DeleteMeasurementsResponse { deleted })
    }
}
