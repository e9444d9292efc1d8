//! What grpcurl, a load balancer and a client see of a server: reflection, health, models.

use hlorank_proto::v1::Task;
use hlorank_tests::prelude::*;
use prost_types::FileDescriptorProto;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

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

/// Asks through one version of the reflection protocol for the files of some symbols, and returns them until one is unknown.
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
        let mut files = vec![];
        let ended = loop {
            match answers.message().await {
                Ok(Some(answer)) => match answer.message_response.unwrap() {
                    MessageResponse::FileDescriptorResponse(found) => {
                        files.extend(found.file_descriptor_proto);
                    }
                    other => panic!("unexpected answer: {other:?}"),
                },
                Ok(None) => break None,
                Err(status) => break Some((status.code(), status.message().to_owned())),
            }
        };
        (files, ended)
    }};
}

#[tokio::test]
async fn services_messages_and_the_details_of_errors_are_described() {
    let server = TestServer::start().await;
    let symbols = [
        "hlorank.v1.CostModelService",
        "hlorank.v1.CostModelService.RankConfigs",
        "hlorank.v1.RankConfigsRequest.top_k",
        "google.rpc.ErrorInfo",
        "google.rpc.BadRequest.FieldViolation",
        "google.rpc.RetryInfo",
        "google.rpc.RequestInfo",
        "google.rpc.Status",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    let (files, ended) = reflected_symbols!(server, v1, symbols);
    assert_eq!((files.len(), ended), (symbols.len(), None));
    let (same, _) = reflected_symbols!(server, v1alpha, symbols);
    assert_eq!(same, files);
    let unknown = ["google.rpc.ErrorInfo", "no.such.Symbol"];
    let (files, ended) = reflected_symbols!(server, v1, unknown);
    let (code, message) = ended.unwrap();
    assert_eq!((files.len(), code), (1, Code::NotFound));
    says!(message, "no.such.Symbol");
}

#[tokio::test]
async fn the_imports_of_every_described_file_are_described() {
    let server = TestServer::start().await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let mut wanted = vec!["hlorank/v1/cost_model_service.proto".to_owned()];
    let mut described = HashSet::new();
    while let Some(name) = wanted.pop() {
        let asked = MessageRequest::FileByFilename(name.clone());
        let question = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(asked),
        };
        let answers = client.server_reflection_info(tokio_stream::once(question));
        let mut answers = answers.await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap();
        let Some(MessageResponse::FileDescriptorResponse(found)) = answer.message_response else {
            panic!("{name} is not described");
        };
        let file = FileDescriptorProto::decode(&*found.file_descriptor_proto[0]).unwrap();
        described.insert(name);
        let imports = file.dependency.into_iter();
        wanted.extend(imports.filter(|import| !described.contains(import)));
    }
    assert!(described.len() > 2, "{described:?}");
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
        assert_eq!(reason(&refused), "METHOD_UNKNOWN", "{refused}");
        assert!(refused.message().contains(path), "{refused}");
    }
    let request = HealthCheckRequest {
        service: "nothing".to_owned(),
    };
    let refused = HealthClient::new(channel).check(request).await.unwrap_err();
    assert_eq!(reason(&refused), "SERVICE_UNKNOWN", "{refused}");
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
}
