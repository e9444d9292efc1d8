//! The methods of `hlorank.v1.CostModelService`. The files beside this one do what they ask for.

use hlorank_proto::{
    received::{self, cost_model_service_server::CostModelService},
    v1,
};
use tonic::{Request, Response, Streaming};

use super::{
    CostModel,
    answer::Answer,
    rank_configs_stream::{Answers, RankStream},
};

#[tonic::async_trait]
impl CostModelService for CostModel {
    async fn rank_configs(
        &self,
        request: Request<received::RankConfigsRequest>,
    ) -> Answer<v1::RankConfigsResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.rank(request, call).await?))
    }

    async fn suggest_configs(
        &self,
        request: Request<received::SuggestConfigsRequest>,
    ) -> Answer<v1::SuggestConfigsResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.suggest(request, call).await?))
    }

    type RankConfigsStreamStream = Answers;

    async fn rank_configs_stream(
        &self,
        request: Request<Streaming<received::RankConfigsStreamRequest>>,
    ) -> Answer<Answers> {
        let (messages, call) = self.call(request)?;
        let stream = RankStream::new(self.clone(), messages, call);
        Ok(Response::new(stream.answers()))
    }

    async fn put_graph(
        &self,
        request: Request<received::PutGraphRequest>,
    ) -> Answer<v1::PutGraphResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.put(request, &call).await?))
    }

    async fn report_measurements(
        &self,
        request: Request<received::ReportMeasurementsRequest>,
    ) -> Answer<v1::ReportMeasurementsResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.report(request, &call).await?))
    }

    async fn renew_leases(
        &self,
        request: Request<v1::RenewLeasesRequest>,
    ) -> Answer<v1::RenewLeasesResponse> {
        Ok(Response::new(self.renew(request.into_inner()).await?))
    }

    async fn list_measurements(
        &self,
        request: Request<v1::ListMeasurementsRequest>,
    ) -> Answer<v1::ListMeasurementsResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.list(request, &call).await?))
    }

    async fn get_measured_graph(
        &self,
        request: Request<v1::GetMeasuredGraphRequest>,
    ) -> Answer<v1::GetMeasuredGraphResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.measured_graph(request, &call).await?))
    }

    async fn delete_measurements(
        &self,
        request: Request<v1::DeleteMeasurementsRequest>,
    ) -> Answer<v1::DeleteMeasurementsResponse> {
        let (request, call) = self.call(request)?;
        Ok(Response::new(self.delete(request, &call).await?))
    }

    async fn decide(&self, request: Request<v1::DecideRequest>) -> Answer<v1::DecideResponse> {
        // Without a place, so that no load refuses it.
        let client = CostModel::client(request.extensions());
        let record = request.extensions().get().cloned().unwrap_or_default();
        let decided = Self::decide(self, request.into_inner(), &client, &record);
        Ok(Response::new(decided.await?))
    }

    async fn list_decisions(
        &self,
        request: Request<v1::ListDecisionsRequest>,
    ) -> Answer<v1::ListDecisionsResponse> {
        let (request, call) = self.call(request)?;
        let listed = Self::list_decisions(self, request, &call);
        Ok(Response::new(listed.await?))
    }
}
