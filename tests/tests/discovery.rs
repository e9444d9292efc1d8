//! What grpcurl, a load balancer and a client see of a server: reflection, health, models.

use hlorank_proto::v1::{GetModelRequest, ListModelsRequest, Task};
use hlorank_tests::TestServer;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

const SERVICES: [&str; 2] = ["hlorank.v1.CostModelService", "hlorank.v1.ModelService"];

#[tokio::test]
async fn services_are_healthy() {
    let server = TestServer::start().await;
    let mut health = HealthClient::new(server.channel().await);
    for service in ["", SERVICES[0], SERVICES[1]] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
}

/// Lists the services through one version of the reflection protocol.
macro_rules! reflected_services {
    ($server:expr, $version:ident) => {{
        use tonic_reflection::pb::$version::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let list = MessageRequest::ListServices(String::new());
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(list) };
        let mut client = ServerReflectionClient::new($server.channel().await);
        let mut answers =
            client.server_reflection_info(tokio_stream::once(request)).await.unwrap().into_inner();
        match answers.message().await.unwrap().unwrap().message_response {
            Some(MessageResponse::ListServicesResponse(list)) => {
                list.service.into_iter().map(|service| service.name).collect::<Vec<String>>()
            }
            other => panic!("unexpected answer: {other:?}"),
        }
    }};
}

#[tokio::test]
async fn services_are_listed_by_both_versions_of_reflection() {
    let server = TestServer::start().await;
    for services in [reflected_services!(server, v1), reflected_services!(server, v1alpha)] {
        for service in SERVICES {
            assert!(services.iter().any(|name| name == service), "{service} is not in {services:?}");
        }
    }
}

#[tokio::test]
async fn a_default_model_of_each_task_is_listed() {
    let server = TestServer::start().await;
    let models = server.models().await.list_models(ListModelsRequest {}).await.unwrap().into_inner().models;
    for task in [Task::Tile, Task::Layout] {
        let defaults: Vec<_> =
            models.iter().filter(|model| model.default_for_task && model.task() == task).collect();
        assert_eq!(defaults.len(), 1, "{task:?}");
        assert!(defaults[0].serving);
        assert_eq!(defaults[0].digest.len(), 32);
        assert!(defaults[0].measured_quality.contains_key("kendall_tau"));
    }
}

#[tokio::test]
async fn one_model_is_reported_by_name_and_version() {
    let server = TestServer::start().await;
    let mut models = server.models().await;
    let request = |name: &str, version| GetModelRequest { name: name.to_owned(), version };
    let newest = models.get_model(request("tile-xla-cpu", 0)).await.unwrap().into_inner().model.unwrap();
    let same =
        models.get_model(request("tile-xla-cpu", newest.version)).await.unwrap().into_inner().model.unwrap();
    assert_eq!(newest, same);
    assert_eq!(models.get_model(request("none", 0)).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(models.get_model(request("", 0)).await.unwrap_err().code(), Code::InvalidArgument);
}
