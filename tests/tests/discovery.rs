//! What grpcurl, a load balancer and a client see of a server: reflection, health, models.

use hlorank_proto::v1::{GetModelRequest, ListModelsRequest, Task};
use hlorank_tests::{TILE_MODEL, TestServer};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_types::StatusExt as _;

const SERVICES: [&str; 2] = ["hlorank.v1.CostModelService", "hlorank.v1.ModelService"];

#[tokio::test]
async fn services_are_healthy() {
    let server = TestServer::start().await;
    let mut health = HealthClient::new(server.channel().await);
    for service in ["", SERVICES[0], SERVICES[1]] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
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
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(list),
        };
        let mut client = ServerReflectionClient::new($server.channel().await);
        let mut answers = client
            .server_reflection_info(tokio_stream::once(request))
            .await
            .unwrap()
            .into_inner();
        match answers.message().await.unwrap().unwrap().message_response {
            Some(MessageResponse::ListServicesResponse(list)) => list
                .service
                .into_iter()
                .map(|service| service.name)
                .collect::<Vec<String>>(),
            other => panic!("unexpected answer: {other:?}"),
        }
    }};
}

#[tokio::test]
async fn services_are_listed_by_both_versions_of_reflection() {
    let server = TestServer::start().await;
    for services in [
        reflected_services!(server, v1),
        reflected_services!(server, v1alpha),
    ] {
        for service in SERVICES {
            assert!(
                services.iter().any(|name| name == service),
                "{service} is not in {services:?}"
            );
        }
    }
}

/// Asks through one version of the reflection protocol for the files of some symbols, and returns what each answer is.
macro_rules! reflected_symbols {
    ($server:expr, $version:ident, $symbols:expr) => {{
        use tonic_reflection::pb::$version::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let questions = $symbols.map(|symbol: &str| {
            let asked = MessageRequest::FileContainingSymbol(symbol.to_owned());
            ServerReflectionRequest {
                host: String::new(),
                message_request: Some(asked),
            }
        });
        let mut client = ServerReflectionClient::new($server.channel().await);
        let questions = tokio_stream::iter(questions);
        let mut answers = client
            .server_reflection_info(questions)
            .await
            .unwrap()
            .into_inner();
        let mut found = vec![];
        while let Some(answer) = answers.message().await.unwrap() {
            found.push(match answer.message_response.unwrap() {
                MessageResponse::FileDescriptorResponse(_) => "a file".to_owned(),
                MessageResponse::ErrorResponse(error) => {
                    format!("{}: {}", error.error_code, error.error_message)
                }
                other => panic!("unexpected answer: {other:?}"),
            });
        }
        found
    }};
}

#[tokio::test]
async fn details_of_errors_are_described_and_a_question_without_an_answer_ends_no_stream() {
    let server = TestServer::start().await;
    let symbols = [
        "google.rpc.ErrorInfo",
        "no.such.Symbol",
        "google.rpc.BadRequest",
        "grpc.health.v1.Health",
    ];
    let expected = [
        "a file",
        "5: the server has no symbol `no.such.Symbol`",
        "a file",
        "a file",
    ];
    assert_eq!(reflected_symbols!(server, v1, symbols), expected);
    assert_eq!(reflected_symbols!(server, v1alpha, symbols), expected);
}

#[tokio::test]
async fn unknown_methods_and_services_are_refused_with_a_reason() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    for path in ["/hlorank.v1.ModelService/Nothing", "/no.Service/Method"] {
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<ListModelsRequest, ListModelsRequest>::default();
        let request = tonic::Request::new(ListModelsRequest {});
        let refused = client
            .unary(request, path.parse().unwrap(), codec)
            .await
            .unwrap_err();
        assert_eq!(
            refused.get_details_error_info().unwrap().reason,
            "METHOD_UNKNOWN",
            "{refused}"
        );
        assert!(refused.message().contains(path), "{refused}");
    }
    let request = HealthCheckRequest {
        service: "nothing".to_owned(),
    };
    let refused = HealthClient::new(channel).check(request).await.unwrap_err();
    assert_eq!(
        refused.get_details_error_info().unwrap().reason,
        "SERVICE_UNKNOWN",
        "{refused}"
    );
}

#[tokio::test]
async fn a_default_model_of_each_task_is_listed() {
    let server = TestServer::start().await;
    let models = server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await
        .unwrap()
        .into_inner()
        .models;
    for task in [Task::Tile, Task::Layout] {
        let defaults: Vec<_> = models
            .iter()
            .filter(|model| model.default_for_task && model.task() == task)
            .collect();
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
    let request = |name: &str, version| GetModelRequest {
        name: name.to_owned(),
        version,
    };
    let newest = models
        .get_model(request(TILE_MODEL, 0))
        .await
        .unwrap()
        .into_inner()
        .model
        .unwrap();
    let same = models
        .get_model(request(TILE_MODEL, newest.version))
        .await
        .unwrap()
        .into_inner()
        .model
        .unwrap();
    assert_eq!(newest, same);
    assert_eq!(
        models
            .get_model(request("none", 0))
            .await
            .unwrap_err()
            .code(),
        Code::NotFound
    );
    assert_eq!(
        models.get_model(request("", 0)).await.unwrap_err().code(),
        Code::InvalidArgument
    );
}
