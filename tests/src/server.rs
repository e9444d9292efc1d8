//! A server in this process on a free port of loopback, with the models of the tests.

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

use crate::{Scrape, TILE_MODEL, http_get, models, onnxruntime};

/// Gauges that are zero on an idle server: requests in progress and queued work.
const TAKEN: [&str; 4] = [
    "hlorank_requests_in_progress",
    "hlorank_queued_nodes",
    "hlorank_waiting_rows",
    "hlorank_compute_queue_tasks",
];

/// Maximum wait for a state of a model version or of the metrics, generous for a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Server that stops when it is dropped.
pub struct TestServer {
    endpoint: String,
    server: RunningServer,
}

impl TestServer {
    /// Starts a server with default settings.
    ///
    /// # Panics
    /// If the server does not start. The message says what to run.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with default settings and these flags; XLA's tiles, which most tests rank, have the default
    /// model.
    ///
    /// # Panics
    /// If the server does not start. The message says what to run.
    pub async fn start_with(flags: &[&str]) -> Self {
        Self::try_start_with(flags)
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server with default settings and these flags; XLA's tiles, which most tests rank, have the default
    /// model.
    ///
    /// # Errors
    /// If the server does not start.
    pub async fn try_start_with(flags: &[&str]) -> Result<Self, StartError> {
        let models = models().display().to_string();
        let library = onnxruntime().display().to_string();
        let tiles = format!("tile={TILE_MODEL}");
        let mut arguments = vec!["hlorank-server", "--onnxruntime", &library];
        let defaults = [
            ["--listen", "127.0.0.1:0"],
            ["--metrics-listen", "127.0.0.1:0"],
            ["--models", &models],
            ["--default-models", &tiles],
        ];
        let is_given = |[flag, _]: &[&str; 2]| flags.iter().any(|given| given.starts_with(flag));
        arguments.extend(
            defaults
                .iter()
                .filter(|default| !is_given(default))
                .flatten(),
        );
        arguments.extend(flags);
        let settings = Settings::parse_from(arguments);
        let server = hlorank_server::start(settings).await?;
        Ok(Self {
            endpoint: format!("http://{}", server.address()),
            server,
        })
    }

    /// Returns the address of the gRPC listener.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the address of the metrics listener; `None` if metrics are off.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.server.metrics_address()
    }

    /// Returns the address of the metrics listener.
    ///
    /// # Panics
    /// If metrics are off.
    #[must_use]
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics().expect("metrics are on")
    }

    /// Scrapes the metrics.
    ///
    /// # Panics
    /// If metrics are off or cannot be read.
    pub async fn scrape(&self) -> Scrape {
        let (status, text) = http_get(self.metrics_address(), "/metrics").await;
        assert_eq!(status, 200, "{text}");
        Scrape::parse(&text)
    }

    /// Reloads models, certificates and tokens, as the program does on SIGHUP.
    pub fn reload(&self) {
        self.server.reload();
    }

    /// Stops gracefully, as the program does on SIGTERM.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Returns the address of the admin listener, if it was started with `--admin-listen`.
    #[must_use]
    pub fn admin_endpoint(&self) -> Option<String> {
        self.server
            .admin_address()
            .map(|address| format!("http://{address}"))
    }

    /// Connects an admin client.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn admin(&self) -> AdminClient {
        let endpoint = self.admin_endpoint().expect("admin calls are enabled");
        AdminClient::connect(&endpoint, Connection::default())
            .await
            .expect("the server accepts admin calls")
    }

    /// Waits until a model version is in this state, and returns it.
    ///
    /// # Panics
    /// If the version is not in this state after a minute.
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

    /// Waits until the metrics satisfy a condition, and returns them.
    ///
    /// # Panics
    /// If the metrics do not satisfy the condition after a minute.
    pub async fn until_metrics(&self, is_so: impl Fn(&Scrape) -> bool) -> Scrape {
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
    ///
    /// # Panics
    /// If requests are left after a minute.
    pub async fn until_idle(&self) {
        self.until_metrics(|scrape| TAKEN.iter().all(|name| scrape.value(name, &[]) == 0.0))
            .await;
    }

    /// Connects the client library.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn client(&self) -> Client {
        Client::connect(&self.endpoint, Connection::default())
            .await
            .expect("the server accepts connections")
    }

    /// Returns a client that makes every call once, for calls that fail as long as they are made.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn client_without_retries(&self) -> Client {
        let connection = Connection {
            retries: 0,
            ..Connection::default()
        };
        Client::connect(&self.endpoint, connection)
            .await
            .expect("the server accepts connections")
    }

    /// Opens a gRPC channel.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(self.endpoint.clone()).expect("an address is a URI");
        endpoint
            .connect()
            .await
            .expect("the server accepts connections")
    }

    /// Connects the generated gRPC client, for requests that the client library would not send.
    pub async fn cost_model(&self) -> CostModelServiceClient<Channel> {
        CostModelServiceClient::new(self.channel().await).max_encoding_message_size(usize::MAX)
    }

    /// Connects a generated gRPC client that sends `grpc-timeout` but does not enforce it itself.
    #[must_use]
    pub fn patient(&self) -> CostModelServiceClient<HttpClient<HttpConnector, Body>> {
        patient(&self.endpoint)
    }

    /// Connects the generated gRPC client.
    pub async fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel().await)
    }
}

/// Returns a generated gRPC client of an endpoint that sends `grpc-timeout` but does not enforce it itself.
///
/// # Panics
/// If the endpoint is not a URI.
#[must_use]
pub fn patient(endpoint: &str) -> CostModelServiceClient<HttpClient<HttpConnector, Body>> {
    let http = HttpClient::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let origin = endpoint.parse().expect("an address is a URI");
    CostModelServiceClient::with_origin(http, origin).max_encoding_message_size(usize::MAX)
}
