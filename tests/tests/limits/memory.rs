//! Limit of the bytes that all calls hold together.

use std::time::Duration;

use futures::{
    StreamExt as _,
    channel::mpsc::{UnboundedSender, unbounded},
};
use hlorank_proto::v1::PutGraphRequest;
use hlorank_tests::{TestServer, graph_of_text, kernel_graph, rank_request};
use http_body::Frame;
use http_body_util::StreamBody;
use prost::{Message as _, bytes::Bytes};
use tokio::task::JoinHandle;
use tonic::{Code, Status, body::Body, transport::Channel};
use tower::ServiceExt as _;

use crate::{
    request::{kernel, text, tiles},
    servers::Past,
};

const LIMIT: usize = 100_000;

/// Bytes before a message: the compression flag and the length.
const PREFIX: usize = 5;

fn past() -> Past {
    Past { code: Code::ResourceExhausted, ..Past::setting("MEMORY_FULL", "--max-call-bytes", None, LIMIT) }
}

async fn server() -> TestServer {
    TestServer::start_with(&[&format!("--max-call-bytes={LIMIT}")]).await
}

async fn held(server: &TestServer) -> f64 {
    server.scrape().await.value("hlorank_call_bytes", &[])
}

/// Waits until calls hold this number of bytes.
async fn until_held(server: &TestServer, bytes: f64) {
    while held(server).await != bytes {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns a request of this number of bytes, most of which are spaces in its graph.
fn put_graph(bytes: usize) -> PutGraphRequest {
    let padded = |spaces| {
        let text = text(&["p = f32[8,8] parameter(0)".to_owned()]) + &" ".repeat(spaces);
        let graph = kernel_graph(graph_of_text(text));
        PutGraphRequest { graph: Some(graph) }
    };
    let beside = padded(bytes / 2).encoded_len() - bytes / 2;
    let request = padded(bytes - beside);
    assert_eq!(request.encoded_len(), bytes);
    request
}

#[tokio::test]
async fn bytes_that_calls_hold() {
    let server = server().await;
    let mut service = server.cost_model().await;
    service.put_graph(put_graph(LIMIT - PREFIX)).await.expect("it is at the limit");
    let refused = service.put_graph(put_graph(LIMIT - PREFIX + 1)).await.unwrap_err();
    past().check(&refused);
    until_held(&server, 0.0).await;
    service.put_graph(put_graph(LIMIT - PREFIX)).await.expect("what was refused holds nothing");
}

/// Starts a call that has sent this number of bytes of a longer message; returns its sender and its result.
fn begin(channel: &Channel, bytes: usize) -> (UnboundedSender<Bytes>, JoinHandle<Status>) {
    let (sender, received) = unbounded::<Bytes>();
    let body = StreamBody::new(received.map(|bytes| Ok::<_, Status>(Frame::data(bytes))));
    let mut message = vec![0];
    message.extend(1_000_000_u32.to_be_bytes());
    message.resize(bytes, 0);
    sender.unbounded_send(message.into()).unwrap();
    let request = http::Request::post("/hlorank.v1.CostModelService/PutGraph")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(body))
        .unwrap();
    let answer = channel.clone().oneshot(request);
    let ended = tokio::spawn(async { Status::from_header_map(answer.await.unwrap().headers()).unwrap() });
    (sender, ended)
}

#[tokio::test]
async fn messages_that_do_not_end() {
    let server = server().await;
    let channel = server.channel().await;
    let begun: Vec<_> = (0..9).map(|_| begin(&channel, 10_000)).collect();
    until_held(&server, 90_000.0).await;
    let (sender, refused) = begin(&channel, 10_001);
    past().check(&refused.await.unwrap());
    drop(sender);
    until_held(&server, 90_000.0).await;
    let (sender, _last) = begin(&channel, 10_000);
    until_held(&server, 100_000.0).await;
    past().refuses(server.cost_model().await, rank_request(kernel(), tiles(1))).await;

    drop((sender, begun));
    until_held(&server, 0.0).await;
    let answer = server.cost_model().await.rank_configs(rank_request(kernel(), tiles(100))).await.unwrap();
    assert_eq!(answer.into_inner().ranking.len(), 100);
}

/// Sizes that only the server knows, because they depend on the decoded batch.
#[tokio::test]
async fn batches_that_grow() {
    let server = server().await;
    let past = past().refuses(server.cost_model().await, rank_request(kernel(), tiles(2_000))).await;
    assert!(past.contains("fewer configurations"), "{past}");
    until_held(&server, 0.0).await;
}
