//! A real server on a free port of loopback, with the models of the repository.

use clap::Parser;
use hlorank_client::{Client, Connection};
use hlorank_proto::v1::{
    cost_model_service_client::CostModelServiceClient, model_service_client::ModelServiceClient,
};
use hlorank_server::{RunningServer, settings::Settings};
use tonic::transport::Channel;

use crate::{onnxruntime, repository};

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
        let models = repository("models/registry").display().to_string();
        let library = onnxruntime().display().to_string();
        let mut arguments = vec!["hlorank-server", "--listen", "127.0.0.1:0", "--onnxruntime", &library];
        if !flags.iter().any(|flag| flag.starts_with("--models")) {
            arguments.extend(["--models", &models]);
        }
        arguments.extend(flags);
        let settings = Settings::parse_from(arguments);
        let server = hlorank_server::start(settings).await.unwrap_or_else(|error| panic!("{error}"));
        Self { endpoint: format!("http://{}", server.address()), server }
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Stops as it does when the program is told to.
    pub async fn stop(self) {
        self.server.stop().await;
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

    /// The bare service.
    pub async fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel().await)
    }
}
