use hlorank_tests::prelude::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::json_calls::curl::{LIST, RANK, call, call_with};

#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_status_reason_field_and_details() {
    let server = TestServer::start().await;
    let missing = call(server.endpoint(), RANK, "{}").await;
    let error = missing.assert_refused(400, "FIELD_MISSING");
    assert_eq!(error["code"], "invalid_argument");
    assert_eq!(error["fields"], json!(["configs"]));
    let details = error["details"].to_string();
    says!(details, "google.rpc.ErrorInfo", "google.rpc.RequestInfo");
    says!(missing.headers, "x-request-id: ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_of_the_method_is_refused_with_its_place() {
    let server = TestServer::start().await;
    let tiles =
        |tile: &str| format!(r#"{{"batch": {{"tileConfigs": {{"configs": [{{}}, {tile}]}}}}}}"#);
    let wrong = tiles(r#"{"outputBounds": ["wide"]}"#);
    let twice = tiles(r#"{"outputBounds": [1], "output_bounds": [2]}"#);
    let deep = "[".repeat(100_000);
    for (json, words) in [
        (
            &*wrong,
            r#""fields":["batch.tileConfigs.configs[1].outputBounds[0]"]"#,
        ),
        (
            &*twice,
            r#""fields":["batch.tileConfigs.configs[1].output_bounds"]"#,
        ),
        (&*twice, "given twice"),
        ("[1]", "line 1 column"),
        (r#"{"topK": -1}"#, "line 1 column"),
        (r#"{"graph": {"graphHash": "!"}}"#, "base64"),
        (&*deep, ""),
    ] {
        let refused = call(server.endpoint(), RANK, json).await;
        let error = refused.assert_refused(400, "REQUEST_MALFORMED");
        says!(error.to_string(), words);
    }
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
    let long = format!("{{\"topK\": {}3}}", " ".repeat(2_000_000));
    let refused = call(server.endpoint(), RANK, &long).await;
    refused.assert_refused(429, "MESSAGE_TOO_LARGE");
    // 900,000 bytes of values that would take about a hundred times their size.
    let values = format!(
        r#"{{"batch": {{"tileConfigs": {{"configs": [{{}}{}]}}}}}}"#,
        ",{}".repeat(300_000)
    );
    let full = call(server.endpoint(), RANK, &values).await;
    let error = full.assert_refused(429, "MEMORY_FULL");
    let retry = error["retryAfterSeconds"].as_f64().unwrap();
    assert!(retry > 0.0, "{error}");
    says!(full.headers, "retry-after: ");

    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /hlorank.v1.CostModelService/RankConfigs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 4096];
    let read = slow.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    says!(answer, "MESSAGE_LATE");
    server.until_idle().await;
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
        refused.assert_refused(501, "METHOD_UNKNOWN");
    }
    let get = call_with(server.endpoint(), LIST, "", &["--request", "GET"]).await;
    get.assert_refused(405, "HTTP_METHOD_UNSUPPORTED");
    says!(get.headers, "allow: post");
    let options = ["--http1.1", "--header", "content-type: application/grpc"];
    let grpc = call_with(server.endpoint(), LIST, "", &options).await;
    assert!(
        [505, 415].contains(&grpc.status),
        "{} {}",
        grpc.status,
        grpc.body
    );
}
