//! A real server on a free port of loopback, with the models of the repository.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use clap::Parser;
use hlorank_client::{AdminClient, Client, Connection};
use hlorank_proto::v1::{
    Model, ModelState, cost_model_service_client::CostModelServiceClient,
    model_service_client::ModelServiceClient,
};
use hlorank_server::{RunningServer, StartError, settings::Settings};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use tonic::{body::Body, transport::Channel};

use crate::{Scrape, http_get, onnxruntime, repository};

/// What calls in progress take: their places, and what waits for them.
const TAKEN: [&str; 4] = [
    "hlorank_requests_in_progress",
    "hlorank_queued_nodes",
    "hlorank_waiting_rows",
    "hlorank_compute_queue_tasks",
];

/// For a state that a version or the metrics come to, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that stops when its test ends.
pub struct TestServer {
    endpoint: String,
    server: RunningServer,
}

impl TestServer {
    /// Starts a server with default settings.
    ///
    /// # Panics
    /// If it does not start; the message says what to run.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with these flags beside the default settings.
    ///
    /// # Panics
    /// If it does not start; the message says what to run.
    pub async fn start_with(flags: &[&str]) -> Self {
        Self::try_start_with(flags).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server with these flags beside the default settings.
    ///
    /// # Errors
    /// Why it does not start.
    pub async fn try_start_with(flags: &[&str]) -> Result<Self, StartError> {
        let models = repository("models/registry").display().to_string();
        let library = onnxruntime().display().to_string();
        let mut arguments = vec!["hlorank-server", "--onnxruntime", &library];
        let defaults =
            [["--listen", "127.0.0.1:0"], ["--metrics-listen", "127.0.0.1:0"], ["--models", &models]];
        let is_given = |[flag, _]: &[&str; 2]| flags.iter().any(|given| given.starts_with(flag));
        arguments.extend(defaults.iter().filter(|default| !is_given(default)).flatten());
        arguments.extend(flags);
        let settings = Settings::parse_from(arguments);
        let server = hlorank_server::start(settings).await?;
        Ok(Self { endpoint: format!("http://{}", server.address()), server })
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Where its metrics are; `None` where they are off.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.server.metrics_address()
    }

    /// Where its metrics are.
    ///
    /// # Panics
    /// If they are off.
    #[must_use]
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics().expect("metrics are on")
    }

    /// What its metrics are now.
    ///
    /// # Panics
    /// If they are off, or cannot be read.
    pub async fn scrape(&self) -> Scrape {
        let (status, text) = http_get(self.metrics_address(), "/metrics").await;
        assert_eq!(status, 200, "{text}");
        Scrape::parse(&text)
    }

    /// Looks at its files as it does on SIGHUP.
    pub fn reload(&self) {
        self.server.reload();
    }

    /// Stops as it does when the program is told to.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Where it listens for admin calls, if it was started with `--admin-listen`.
    #[must_use]
    pub fn admin_endpoint(&self) -> Option<String> {
        self.server.admin_address().map(|address| format!("http://{address}"))
    }

    /// The admin client, connected.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn admin(&self) -> AdminClient {
        let endpoint = self.admin_endpoint().expect("admin calls are enabled");
        AdminClient::connect(&endpoint, Connection::default()).await.expect("the server accepts admin calls")
    }

    /// A version of a model, once the server says that it is in this state.
    ///
    /// # Panics
    /// If it is not within a minute.
    pub async fn until(&self, name: &str, version: u64, state: ModelState) -> Model {
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

    /// What its metrics are, once they are so.
    ///
    /// # Panics
    /// If they are not within a minute.
    pub async fn until_metrics(&self, is_so: impl Fn(&Scrape) -> bool) -> Scrape {
        let started = Instant::now();
        loop {
            let scrape = self.scrape().await;
            if is_so(&scrape) {
                return scrape;
            }
            let taken = TAKEN.map(|name| (name, scrape.value(name, &[])));
            assert!(started.elapsed() < PATIENCE, "it is not so after {PATIENCE:?}: {taken:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until it has nothing left to do, and nobody's place taken.
    ///
    /// # Panics
    /// If it still has after a minute.
    pub async fn until_idle(&self) {
        self.until_metrics(|scrape| TAKEN.iter().all(|name| scrape.value(name, &[]) == 0.0)).await;
    }

    /// The client library, connected.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn client(&self) -> Client {
        Client::connect(&self.endpoint, Connection::default()).await.expect("the server accepts connections")
    }

    /// A bare gRPC channel.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(self.endpoint.clone()).expect("an address is a URI");
        endpoint.connect().await.expect("the server accepts connections")
    }

    /// The bare service, for requests that the client library would not send.
    pub async fn cost_model(&self) -> CostModelServiceClient<Channel> {
        CostModelServiceClient::new(self.channel().await).max_encoding_message_size(usize::MAX)
    }

    /// The bare service, through a client that tells the server `grpc-timeout` and does not itself keep it.
    #[must_use]
    pub fn patient(&self) -> CostModelServiceClient<HttpClient<HttpConnector, Body>> {
        patient(&self.endpoint)
    }

    /// The bare service.
    pub async fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel().await)
    }
}

/// The bare service at an endpoint, through a client that tells the server `grpc-timeout` and does not itself keep it.
///
/// # Panics
/// If the endpoint is no URI.
#[must_use]
pub fn patient(endpoint: &str) -> CostModelServiceClient<HttpClient<HttpConnector, Body>> {
    let http = HttpClient::builder(TokioExecutor::new()).http2_only(true).build_http();
    let origin = endpoint.parse().expect("an address is a URI");
    CostModelServiceClient::with_origin(http, origin).max_encoding_message_size(usize::MAX)
}
