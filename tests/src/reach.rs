//! How tests reach a server, whether it runs in their process or in its own.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use hlorank_client::{AdminClient, Client, Connection};
use hlorank_proto::v1::{
    Model, ModelState, RankConfigsRequest, RankConfigsResponse,
    cost_model_service_client::CostModelServiceClient,
    model_admin_service_client::ModelAdminServiceClient, model_service_client::ModelServiceClient,
};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use tonic::{IntoRequest, Response, Status, body::Body, transport::Channel};

use crate::{Scrape, http_get};

/// Gauges that are zero on an idle server: requests in progress and queued work.
const TAKEN: [&str; 4] = [
    "hlorank_requests_in_progress",
    "hlorank_queued_nodes",
    "hlorank_waiting_rows",
    "hlorank_compute_queue_tasks",
];

/// Maximum wait for a state of a model version or of the metrics, generous for a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that tests call. Its methods panic if the server does not answer as a test expects.
#[expect(async_fn_in_trait, reason = "only tests call it")]
pub trait Reach {
    /// Returns the address of the gRPC listener, as a URI.
    fn endpoint(&self) -> &str;

    /// Returns the address of the metrics listener; `None` if metrics are off.
    fn metrics(&self) -> Option<SocketAddr> {
        None
    }

    /// Returns the address of the admin listener, as a URI, if there is one.
    fn admin_endpoint(&self) -> Option<String> {
        None
    }

    /// Returns host and port of the gRPC listener.
    fn address(&self) -> &str {
        self.endpoint().trim_start_matches("http://")
    }

    /// Returns the address of the metrics listener.
    fn metrics_address(&self) -> SocketAddr {
        self.metrics().expect("metrics are on")
    }

    /// Scrapes the metrics.
    async fn scrape(&self) -> Scrape {
        let (status, text) = http_get(self.metrics_address(), "/metrics").await;
        assert_eq!(status, 200, "{text}");
        Scrape::parse(&text)
    }

    /// Connects an admin client.
    async fn admin(&self) -> AdminClient {
        let endpoint = self.admin_endpoint().expect("admin calls are enabled");
        AdminClient::connect(&endpoint, Connection::default())
            .await
            .expect("the server accepts admin calls")
    }

    /// Connects the generated gRPC client of admin calls.
    async fn admin_calls(&self) -> ModelAdminServiceClient<Channel> {
        let endpoint = self.admin_endpoint().expect("admin calls are enabled");
        ModelAdminServiceClient::new(channel_to(endpoint).await)
    }

    /// Waits until a model version is in this state, and returns it.
    async fn until(&self, name: &str, version: u64, state: ModelState) -> Model {
        let client = self.client().await;
        let started = Instant::now();
        loop {
            let model = client.get_model(name, Some(version)).await;
            match model {
                Ok(model) if model.state() == state => return model,
                model => assert!(started.elapsed() < PATIENCE, "not {state:?} but {model:?}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the metrics satisfy a condition, and returns them.
    async fn until_metrics(&self, is_so: impl Fn(&Scrape) -> bool) -> Scrape {
        let started = Instant::now();
        loop {
            let scrape = self.scrape().await;
            if is_so(&scrape) {
                return scrape;
            }
            let taken = TAKEN.map(|name| (name, scrape.value(name, &[])));
            assert!(
                started.elapsed() < PATIENCE,
                "it is not so after {PATIENCE:?}: {taken:?}"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until no request is in progress or queued.
    async fn until_idle(&self) {
        self.until_metrics(|scrape| TAKEN.iter().all(|name| scrape.value(name, &[]) == 0.0))
            .await;
    }

    /// Connects the client library.
    async fn client(&self) -> Client {
        self.client_with(Connection::default()).await
    }

    /// Connects a client that makes every call once, for calls that fail as long as they are made.
    async fn client_without_retries(&self) -> Client {
        self.client_with(Connection {
            retries: 0,
            ..Connection::default()
        })
        .await
    }

    /// Connects the client library with these options.
    async fn client_with(&self, connection: Connection) -> Client {
        Client::connect(self.endpoint(), connection)
            .await
            .expect("the server accepts connections")
    }

    /// Opens a gRPC channel.
    async fn channel(&self) -> Channel {
        channel_to(self.endpoint().to_owned()).await
    }

    /// Connects the generated gRPC client, for requests that the client library would not send.
    async fn cost_model(&self) -> CostModelServiceClient<Channel> {
        CostModelServiceClient::new(self.channel().await)
            .max_encoding_message_size(usize::MAX)
            .max_decoding_message_size(usize::MAX)
    }

    /// Sends a request that the client library would not send.
    async fn rank(
        &self,
        request: impl IntoRequest<RankConfigsRequest>,
    ) -> Result<RankConfigsResponse, Status> {
        self.cost_model()
            .await
            .rank_configs(request)
            .await
            .map(Response::into_inner)
    }

    /// Connects a generated gRPC client that sends `grpc-timeout` but does not enforce it itself.
    fn patient(&self) -> CostModelServiceClient<HttpClient<HttpConnector, Body>> {
        let http = HttpClient::builder(TokioExecutor::new())
            .http2_only(true)
            .build_http();
        let origin = self.endpoint().parse().expect("an address is a URI");
        CostModelServiceClient::with_origin(http, origin).max_encoding_message_size(usize::MAX)
    }

    /// Connects the generated gRPC client.
    async fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel().await)
    }
}

/// Opens a gRPC channel to a URI.
async fn channel_to(endpoint: String) -> Channel {
    let endpoint = Channel::from_shared(endpoint).expect("an address is a URI");
    endpoint
        .connect()
        .await
        .expect("the server accepts connections")
}
