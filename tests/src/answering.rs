use hlorank_proto::v1::{
    DecideRequest, DecideResponse, DeleteMeasurementsRequest, DeleteMeasurementsResponse,
    GetMeasuredGraphRequest, GetMeasuredGraphResponse, ListDecisionsRequest, ListDecisionsResponse,
    ListMeasurementsRequest, ListMeasurementsResponse, ModelSelector, PutGraphRequest,
    PutGraphResponse, RankConfigsRequest, RankConfigsResponse, RankConfigsStreamRequest,
    RankConfigsStreamResponse, RenewLeasesRequest, RenewLeasesResponse, ReportMeasurementsRequest,
    ReportMeasurementsResponse, SuggestConfigsRequest, SuggestConfigsResponse,
    cost_model_service_server::{CostModelService, CostModelServiceServer},
};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, async_trait, transport::Server};

use crate::Reach;

/// A server that gives the same answers to every call, whatever was sent. Dropping it stops it.
pub struct AnsweringServer {
    endpoint: String,
    serving: JoinHandle<()>,
}

/// The answers of a server.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Answer to every `PutGraph`.
    pub graph: PutGraphResponse,
    /// Answer to every `RankConfigs`.
    pub ranking: RankConfigsResponse,
    /// Answer to every `SuggestConfigs`.
    pub suggestions: SuggestConfigsResponse,
    /// Answer to every `ReportMeasurements`.
    pub reported: ReportMeasurementsResponse,
    /// Answer to every `ListMeasurements`.
    pub measurements: ListMeasurementsResponse,
    /// Answers to every `RankConfigsStream`, one for each message of the client, and one at the end of its messages.
    pub stream: Vec<RankConfigsStreamResponse>,
}

impl AnsweringServer {
    /// Starts a server.
    pub async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let serving = Server::builder().add_service(CostModelServiceServer::new(answers));
        let serving = tokio::spawn(async move {
            serving
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        Self { endpoint, serving }
    }
}

impl Reach for AnsweringServer {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

impl Drop for AnsweringServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns a valid answer to a request to rank two configurations.
pub fn valid_ranking() -> RankConfigsResponse {
    RankConfigsResponse {
        ranking: vec![1, 0],
        ranking_scores: vec![-1.0, 1.0],
        scored_configs: 2,
        model: Some(ModelSelector {
            name: "some".to_owned(),
            version: 1,
            ..ModelSelector::default()
        }),
        graph_hash: vec![7; 32].into(),
        ..RankConfigsResponse::default()
    }
}

#[async_trait]
impl CostModelService for Answers {
    type RankConfigsStreamStream = ReceiverStream<Result<RankConfigsStreamResponse, Status>>;

    async fn rank_configs(
        &self,
        _: Request<RankConfigsRequest>,
    ) -> Result<Response<RankConfigsResponse>, Status> {
        Ok(Response::new(self.ranking.clone()))
    }

    async fn rank_configs_stream(
        &self,
        messages: Request<Streaming<RankConfigsStreamRequest>>,
    ) -> Result<Response<Self::RankConfigsStreamStream>, Status> {
        let (mut messages, answers) = (messages.into_inner(), self.stream.clone());
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            for answer in answers {
                if messages.message().await.is_err() || sender.send(Ok(answer)).await.is_err() {
                    break;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn suggest_configs(
        &self,
        _: Request<SuggestConfigsRequest>,
    ) -> Result<Response<SuggestConfigsResponse>, Status> {
        Ok(Response::new(self.suggestions.clone()))
    }

    async fn report_measurements(
        &self,
        _: Request<ReportMeasurementsRequest>,
    ) -> Result<Response<ReportMeasurementsResponse>, Status> {
        Ok(Response::new(self.reported.clone()))
    }

    async fn renew_leases(
        &self,
        _: Request<RenewLeasesRequest>,
    ) -> Result<Response<RenewLeasesResponse>, Status> {
        Ok(Response::new(RenewLeasesResponse::default()))
    }

    async fn list_measurements(
        &self,
        _: Request<ListMeasurementsRequest>,
    ) -> Result<Response<ListMeasurementsResponse>, Status> {
        Ok(Response::new(self.measurements.clone()))
    }

    async fn get_measured_graph(
        &self,
        _: Request<GetMeasuredGraphRequest>,
    ) -> Result<Response<GetMeasuredGraphResponse>, Status> {
        Ok(Response::new(GetMeasuredGraphResponse::default()))
    }

    async fn delete_measurements(
        &self,
        _: Request<DeleteMeasurementsRequest>,
    ) -> Result<Response<DeleteMeasurementsResponse>, Status> {
        Ok(Response::new(DeleteMeasurementsResponse::default()))
    }

    async fn decide(&self, _: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        Ok(Response::new(DecideResponse::default()))
    }

    async fn list_decisions(
        &self,
        _: Request<ListDecisionsRequest>,
    ) -> Result<Response<ListDecisionsResponse>, Status> {
        Ok(Response::new(ListDecisionsResponse::default()))
    }

    async fn put_graph(
        &self,
        _: Request<PutGraphRequest>,
    ) -> Result<Response<PutGraphResponse>, Status> {
        Ok(Response::new(self.graph.clone()))
    }
}
