//! `DeleteMeasurements`: deletes stored measurements.

use hlorank_proto::v1::{DeleteMeasurementsRequest, DeleteMeasurementsResponse};

use super::{CostModel, ServiceError, adapt_request::check_target, graph_request::read_chosen};
use crate::{call::CallError, store::Reporter};

impl CostModel {
    pub(super) async fn delete(
        &self,
        request: DeleteMeasurementsRequest,
    ) -> Result<DeleteMeasurementsResponse, ServiceError> {
        let store = self.stored.store().map_err(CallError::from)?;
        let reporter = Reporter::named(&request.reporter);
        // A request whose fields are not set must not delete everything: only the measurements of a
        // reporter are deleted on all targets.
        if reporter.is_none() || !request.target.is_empty() {
            check_target("target", &request.target)?;
        }
        let chosen = read_chosen(request.target, &request.graph_hash, reporter)?;
        let deleted = store.delete(&chosen).await.map_err(CallError::from)?;
        Ok(DeleteMeasurementsResponse { deleted })
    }
}
