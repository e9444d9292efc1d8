//! What grpcurl, a load balancer and a client see of a server: reflection, health, models.

use hlorank_tests::prelude::*;
use prost_types::FileDescriptorProto;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse,
    server_reflection_request::MessageRequest::{self, FileByFilename, FileContainingSymbol},
    server_reflection_response::MessageResponse,
};

const SERVICES: [&str; 2] = ["hlorank.v1.CostModelService", "hlorank.v1.ModelService"];

#[tokio::test]
async fn services_and_models_are_healthy() {
    let server = TestServer::start().await;
    let mut health = HealthClient::new(server.channel().await);
    let mut check = async |service: &str| {
        let service = service.to_owned();
        health.check(HealthCheckRequest { service }).await
    };
    for service in ["", SERVICES[0], SERVICES[1], TILE_MODEL] {
        let answer = check(service).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let refused = check("nothing").await.unwrap_err();
    assert_eq!(reason(&refused), "SERVICE_UNKNOWN", "{refused}");
}

/// Asks a version of the reflection protocol, all of which have the same messages. Returns the answers, and how they end.
async fn reflected(
    server: &TestServer,
    version: &str,
    questions: impl IntoIterator<Item = MessageRequest>,
) -> (Vec<MessageResponse>, Option<Status>) {
    let message = |question| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(question),
    };
    let messages: Vec<_> = questions.into_iter().map(message).collect();
    let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
    let codec = ProstCodec::<ServerReflectionRequest, ServerReflectionResponse>::default();
    let mut client = Grpc::new(server.channel().await);
    client.ready().await.unwrap();
    let messages = Request::new(tokio_stream::iter(messages));
    let answers = client.streaming(messages, path.parse().unwrap(), codec);
    let mut answers = answers.await.unwrap().into_inner();
    let mut responses = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => responses.push(answer.message_response.unwrap()),
            Ok(None) => return (responses, None),
            Err(status) => return (responses, Some(status)),
        }
    }
}

/// Returns the only file of an answer.
fn file(answer: &MessageResponse) -> FileDescriptorProto {
    let MessageResponse::FileDescriptorResponse(found) = answer else {
        panic!("unexpected answer: {answer:?}");
    };
    assert_eq!(found.file_descriptor_proto.len(), 1);
    FileDescriptorProto::decode(&*found.file_descriptor_proto[0]).unwrap()
}

#[tokio::test]
async fn services_are_listed_by_both_versions_of_reflection() {
    let server = TestServer::start().await;
    for version in ["v1", "v1alpha"] {
        let list = MessageRequest::ListServices(String::new());
        let (answers, _) = reflected(&server, version, [list]).await;
        let MessageResponse::ListServicesResponse(list) = &answers[0] else {
            panic!("unexpected answer: {answers:?}");
        };
        for service in SERVICES {
            let is_listed = list.service.iter().any(|each| each.name == service);
            assert!(is_listed, "{service} is not in {list:?}");
        }
    }
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
    let questions = symbols.map(|symbol| FileContainingSymbol(symbol.to_owned()));
    let (answers, ended) = reflected(&server, "v1", questions.clone()).await;
    assert!(ended.is_none(), "{ended:?}");
    let files: Vec<FileDescriptorProto> = answers.iter().map(file).collect();
    assert_eq!(files.len(), symbols.len());
    let (same, _) = reflected(&server, "v1alpha", questions).await;
    assert_eq!(same, answers);
    let unknown = ["google.rpc.ErrorInfo", "no.such.Symbol"];
    let questions = unknown.map(|symbol| FileContainingSymbol(symbol.to_owned()));
    let (answers, ended) = reflected(&server, "v1", questions).await;
    let ended = ended.unwrap();
    assert_eq!((answers.len(), ended.code()), (1, Code::NotFound));
    says!(ended.message(), "no.such.Symbol");
}

#[tokio::test]
async fn the_imports_of_every_described_file_are_described() {
    let server = TestServer::start().await;
    let mut wanted = vec!["hlorank/v1/cost_model_service.proto".to_owned()];
    let mut described = HashSet::new();
    while let Some(name) = wanted.pop() {
        let (answers, _) = reflected(&server, "v1", [FileByFilename(name.clone())]).await;
        described.insert(name);
        let imports = file(&answers[0]).dependency.into_iter();
        wanted.extend(imports.filter(|import| !described.contains(import)));
    }
    assert!(described.len() > 2, "{described:?}");
}

#[tokio::test]
async fn unknown_methods_are_refused_with_a_reason() {
    let server = TestServer::start().await;
    for path in [
        "/hlorank.v1.ModelService/Nothing",
        "/no.Service/Method",
        // Admin calls are answered on their listener alone.
        "/hlorank.v1.ModelAdminService/Reload",
    ] {
        let mut client = Grpc::new(server.channel().await);
        client.ready().await.unwrap();
        let codec = ProstCodec::<ListModelsRequest, ListModelsRequest>::default();
        let request = Request::new(ListModelsRequest {});
        let refused = client.unary(request, path.parse().unwrap(), codec).await;
        let refused = refused.unwrap_err();
        assert_eq!(reason(&refused), "METHOD_UNKNOWN", "{refused}");
        says!(refused.message(), path);
    }
}

#[tokio::test]
async fn one_model_is_reported_by_name_and_version() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let newest = client.get_model(TILE_MODEL, None).await.unwrap();
    assert_eq!(newest.digest.len(), 32);
    assert!(newest.measured_quality.contains_key("kendall_tau"));
    let same = client.get_model(TILE_MODEL, Some(newest.version)).await;
    assert_eq!(same.unwrap(), newest);
}
