use std::sync::Arc;

use hlorank_proto::{
    received::{
        PutGraphRequest, RankConfigsRequest, RankConfigsStreamRequest, ReportMeasurementsRequest,
        SuggestConfigsRequest, cost_model_service_server::CostModelService,
    },
    v1::{
        DeleteMeasurementsRequest, DeleteMeasurementsResponse, GetMeasuredGraphRequest,
        GetMeasuredGraphResponse, ListMeasurementsRequest, ListMeasurementsResponse,
        PutGraphResponse, RankConfigsResponse, ReportMeasurementsResponse, SuggestConfigsResponse,
    },
};
use tonic::{Extensions, Request, Response, Status, Streaming};

use super::rank_configs_stream::{Answers, RankStream};
use crate::{
    admission::{AdminScope, Admission, Caller, Place},
    call::{Bounds, Call, CallError, Client, Decoder},
    errors::ServiceError,
    graphs::Graphs,
    learning::Learning,
    session::{ModelSelection, Sessions},
    store::Reporter,
    stored_measurements::StoredMeasurements,
    telemetry::CallRecord,
};

/// `hlorank.v1.CostModelService`, by the parts that its calls go through. Each method has a file of its own, which reads the
/// request, does the work and writes the answer. Clones share everything.
#[derive(Clone)]
pub(crate) struct CostModel {
    pub(crate) admission: Arc<Admission>,
    pub(crate) decoder: Decoder,
    pub(crate) models: Arc<ModelSelection>,
    pub(crate) graphs: Arc<Graphs>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) stored: Arc<StoredMeasurements>,
    pub(crate) bounds: Bounds,
}

impl CostModel {
    /// Returns the call that a request belongs to, from what the layers found out about it.
    fn call(&self, extensions: &Extensions) -> Result<Call, ServiceError> {
        let caller = extensions.get().cloned().unwrap_or(Caller::Unknown);
        let place = match extensions.get::<Place>() {
            Some(place) => Ok(place.clone()),
            None => self.admission.open(&caller, 0),
        };
        Ok(Call {
            place: place.map_err(CallError::from)?,
            // Calls that are not observed leave their record unread.
            record: extensions.get::<CallRecord>().cloned().unwrap_or_default(),
            deadline: extensions.get().copied(),
            client: Client {
                reporter: Reporter::named(&caller.name()).expect("callers have names"),
                is_admin: extensions.get::<AdminScope>().is_some(),
            },
        })
    }
}

#[tonic::async_trait]
impl CostModelService for CostModel {
    async fn rank_configs(
        &self,
        request: Request<RankConfigsRequest>,
    ) -> Result<Response<RankConfigsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let answer = self.rank(request.into_inner(), call).await?;
        Ok(Response::new(answer))
    }

    async fn suggest_configs(
        &self,
        request: Request<SuggestConfigsRequest>,
    ) -> Result<Response<SuggestConfigsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let answer = self.suggest(request.into_inner(), call).await?;
        Ok(Response::new(answer))
    }

    type RankConfigsStreamStream = Answers;

    async fn rank_configs_stream(
        &self,
        request: Request<Streaming<RankConfigsStreamRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let call = self.call(request.extensions())?;
        let stream = RankStream::new(self.clone(), request.into_inner(), call);
        Ok(Response::new(stream.answers()))
    }

    async fn put_graph(
        &self,
        request: Request<PutGraphRequest>,
    ) -> Result<Response<PutGraphResponse>, Status> {
        let call = self.call(request.extensions())?;
        let answer = self.put(request.into_inner(), &call.record).await?;
        Ok(Response::new(answer))
    }

    async fn report_measurements(
        &self,
        request: Request<ReportMeasurementsRequest>,
    ) -> Result<Response<ReportMeasurementsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let answer = self.report(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn list_measurements(
        &self,
        request: Request<ListMeasurementsRequest>,
    ) -> Result<Response<ListMeasurementsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let answer = self.list(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn get_measured_graph(
        &self,
        request: Request<GetMeasuredGraphRequest>,
    ) -> Result<Response<GetMeasuredGraphResponse>, Status> {
        let answer = self.measured_graph(request.into_inner()).await?;
        Ok(Response::new(answer))
    }

    async fn delete_measurements(
        &self,
        request: Request<DeleteMeasurementsRequest>,
    ) -> Result<Response<DeleteMeasurementsResponse>, Status> {
        let answer = self.delete(request.into_inner()).await?;
        Ok(Response::new(answer))
    }
}
