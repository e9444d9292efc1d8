//! The methods of `hlorank.v1.CostModelService`. Each has a file of its own.

use hlorank_proto::{
    received::{
        PutGraphRequest, RankConfigsRequest, RankConfigsStreamRequest, ReportMeasurementsRequest,
        SuggestConfigsRequest, cost_model_service_server::CostModelService,
    },
    v1::{
        DecideRequest, DecideResponse, DeleteMeasurementsRequest, DeleteMeasurementsResponse,
        GetMeasuredGraphRequest, GetMeasuredGraphResponse, ListDecisionsRequest,
        ListDecisionsResponse, ListMeasurementsRequest, ListMeasurementsResponse, PutGraphResponse,
        RankConfigsResponse, RenewLeasesRequest, RenewLeasesResponse, ReportMeasurementsResponse,
        SuggestConfigsResponse,
    },
};
use tonic::{Request, Response, Status, Streaming};

use super::{
    CostModel,
    rank_configs_stream::{Answers, RankStream},
};

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
        let answer = self.put(request.into_inner(), &call).await?;
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

    async fn renew_leases(
        &self,
        request: Request<RenewLeasesRequest>,
    ) -> Result<Response<RenewLeasesResponse>, Status> {
        let answer = self.renew(request.into_inner()).await?;
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
        let call = self.call(request.extensions())?;
        let answer = self.measured_graph(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn delete_measurements(
        &self,
        request: Request<DeleteMeasurementsRequest>,
    ) -> Result<Response<DeleteMeasurementsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let answer = self.delete(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }
    async fn decide(
        &self,
        request: Request<DecideRequest>,
    ) -> Result<Response<DecideResponse>, Status> {
        // Without a place, so that no load refuses it.
        let client = CostModel::client(request.extensions());
        let record = request.extensions().get().cloned().unwrap_or_default();
        let decided = Self::decide(self, request.into_inner(), &client, &record);
        Ok(Response::new(decided.await?))
    }

    async fn list_decisions(
        &self,
        request: Request<ListDecisionsRequest>,
    ) -> Result<Response<ListDecisionsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let listed = Self::list_decisions(self, request.into_inner(), &call);
        Ok(Response::new(listed.await?))
    }
}
