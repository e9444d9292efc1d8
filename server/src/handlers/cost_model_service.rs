//! The methods of `hlorank.v1.CostModelService`. Each has a file of its own.

use hlorank_proto::{
    received::{self, cost_model_service_server::CostModelService},
    v1,
};
use tonic::{Request, Response, Streaming};

use super::{
    Answer, CostModel,
    rank_configs_stream::{Answers, RankStream},
};

#[tonic::async_trait]
impl CostModelService for CostModel {
    async fn rank_configs(
        &self,
        request: Request<received::RankConfigsRequest>,
    ) -> Answer<v1::RankConfigsResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.rank(request.into_inner(), call).await?;
        Ok(Response::new(answer))
    }

    async fn suggest_configs(
        &self,
        request: Request<received::SuggestConfigsRequest>,
    ) -> Answer<v1::SuggestConfigsResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.suggest(request.into_inner(), call).await?;
        Ok(Response::new(answer))
    }

    type RankConfigsStreamStream = Answers;

    async fn rank_configs_stream(
        &self,
        request: Request<Streaming<received::RankConfigsStreamRequest>>,
    ) -> Answer<Answers> {
        let call = self.call(request.extensions())?;
        let stream = RankStream::new(self.clone(), request.into_inner(), call);
        Ok(Response::new(stream.answers()))
    }

    async fn put_graph(
        &self,
        request: Request<received::PutGraphRequest>,
    ) -> Answer<v1::PutGraphResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.put(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn report_measurements(
        &self,
        request: Request<received::ReportMeasurementsRequest>,
    ) -> Answer<v1::ReportMeasurementsResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.report(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn renew_leases(
        &self,
        request: Request<v1::RenewLeasesRequest>,
    ) -> Answer<v1::RenewLeasesResponse> {
        let answer = self.renew(request.into_inner()).await?;
        Ok(Response::new(answer))
    }

    async fn list_measurements(
        &self,
        request: Request<v1::ListMeasurementsRequest>,
    ) -> Answer<v1::ListMeasurementsResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.list(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn get_measured_graph(
        &self,
        request: Request<v1::GetMeasuredGraphRequest>,
    ) -> Answer<v1::GetMeasuredGraphResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.measured_graph(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
    }

    async fn delete_measurements(
        &self,
        request: Request<v1::DeleteMeasurementsRequest>,
    ) -> Answer<v1::DeleteMeasurementsResponse> {
        let call = self.call(request.extensions())?;
        let answer = self.delete(request.into_inner(), &call).await?;
        Ok(Response::new(answer))
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
        let call = self.call(request.extensions())?;
        let listed = Self::list_decisions(self, request.into_inner(), &call);
        Ok(Response::new(listed.await?))
    }
}
