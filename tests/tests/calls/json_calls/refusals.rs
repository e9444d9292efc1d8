use std::{io::Write as _, net::TcpStream};

use hlorank_tests::prelude::*;

use crate::json_calls::curl::{Answered, call, call_with};

fn assert_refused(answered: &Answered, status: u16, code: &str, reason: &str) -> Value {
    assert_eq!(answered.status, status, "{}", answered.body);
    says!(answered.headers, "content-type: application/json");
    let error = answered.json();
    assert_eq!(
        (&error["code"], &error["reason"]),
        (&code.into(), &reason.into()),
        "{error}"
    );
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_status_reason_field_and_details() {
    let server = TestServer::start().await;
    let rank =
        async |json: &str| call(server.endpoint(), "CostModelService/RankConfigs", json).await;
    let missing = rank("{}").await;
    let error = assert_refused(&missing, 400, "invalid_argument", "FIELD_MISSING");
    assert_eq!(error["fields"], json!(["configs"]));
    let types: Vec<&str> = error["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["type"].as_str().unwrap())
        .collect();
    assert!(
        types.contains(&"google.rpc.ErrorInfo") && types.contains(&"google.rpc.RequestInfo"),
        "{types:?}"
    );
    says!(missing.headers, "x-request-id: ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_of_the_method_is_refused_with_its_place() {
    let server = TestServer::start().await;
    let rank =
        async |json: &str| call(server.endpoint(), "CostModelService/RankConfigs", json).await;
    let wrong = r#"{"batch": {"tileConfigs": {"configs": [{}, {"outputBounds": ["wide"]}]}}}"#;
    let error = assert_refused(
        &rank(wrong).await,
        400,
        "invalid_argument",
        "REQUEST_MALFORMED",
    );
    assert_eq!(
        error["fields"],
        json!(["batch.tileConfigs.configs[1].outputBounds[0]"])
    );
    for (json, part) in [
        ("[1]", "line 1 column"),
        (r#"{"topK": -1}"#, "line 1 column"),
        (r#"{"graph": {"graphHash": "!"}}"#, "base64"),
    ] {
        let error = assert_refused(
            &rank(json).await,
            400,
            "invalid_argument",
            "REQUEST_MALFORMED",
        );
        assert!(
            error["message"].as_str().unwrap().contains(part),
            "{json}: {error}"
        );
    }
    let deep = "[".repeat(100_000);
    assert_refused(
        &rank(&deep).await,
        400,
        "invalid_argument",
        "REQUEST_MALFORMED",
    );
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_limits_of_messages_and_of_memory() {
    let flags = [
        "--max-message-bytes=1000000",
        "--max-call-bytes=33554432",
        "--max-message-seconds=0.5",
    ];
    let server = TestServer::start_with(&flags).await;
    let rank =
        async |json: &str| call(server.endpoint(), "CostModelService/RankConfigs", json).await;
    let error = rank(&format!("{{\"topK\": {}3}}", " ".repeat(2_000_000))).await;
    assert_refused(&error, 429, "resource_exhausted", "MESSAGE_TOO_LARGE");
    // 900,000 bytes of values that would take about a hundred times their size.
    let values = format!(
        r#"{{"batch": {{"tileConfigs": {{"configs": [{{}}{}]}}}}}}"#,
        ",{}".repeat(300_000)
    );
    let full = rank(&values).await;
    let error = assert_refused(&full, 429, "resource_exhausted", "MEMORY_FULL");
    assert!(
        error["retryAfterSeconds"].as_f64().unwrap() > 0.0,
        "{error}"
    );
    says!(full.headers, "retry-after: ");

    let address = server.address().to_owned();
    let slow = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = "POST /hlorank.v1.CostModelService/RankConfigs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                    content-length: 100\r\n\r\n{";
        stream.write_all(head.as_bytes()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        let mut answer = [0; 4096];
        let read = std::io::Read::read(&mut stream, &mut answer).unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    });
    let slow = slow.await.unwrap();
    assert!(
        slow.starts_with("HTTP/1.1 504") && slow.contains("MESSAGE_LATE"),
        "{slow}"
    );
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_kept() {
    let server = TestServer::start().await;
    let options = ["--header", "grpc-timeout: 1n"];
    let late = call_with(
        server.endpoint(),
        "CostModelService/RankConfigs",
        "{}",
        &options,
    )
    .await;
    assert_refused(&late, 504, "deadline_exceeded", "DEADLINE_EXCEEDED");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_unknown_methods_and_grpc_over_http_1_are_refused() {
    let server = TestServer::start().await;
    for method in [
        "CostModelService/RankConfigsStream",
        "CostModelService/Nothing",
        "NoService/Method",
    ] {
        let refused = call(server.endpoint(), method, "{}").await;
        assert_refused(&refused, 501, "unimplemented", "METHOD_UNKNOWN");
    }
    let get = call_with(
        server.endpoint(),
        "ModelService/ListModels",
        "",
        &["--request", "GET"],
    )
    .await;
    assert_refused(&get, 405, "unimplemented", "HTTP_METHOD_UNSUPPORTED");
    says!(get.headers, "allow: post");
    let options = ["--http1.1", "--header", "content-type: application/grpc"];
    let grpc = call_with(server.endpoint(), "ModelService/ListModels", "", &options).await;
    assert!(
        grpc.status == 505 || grpc.status == 415,
        "{} {}",
        grpc.status,
        grpc.body
    );
}
