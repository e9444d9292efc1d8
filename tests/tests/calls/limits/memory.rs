//! Limit of the bytes that all calls hold together.

use hlorank_tests::prelude::*;

use crate::limits::{
    open_call::OpenCall,
    request::{kernel, text, tiles},
    servers::Past,
};

/// Limit of the server. One client may hold three quarters of the seven eighths that are not reserved for small calls.
const LIMIT: usize = 1_523_810;
const SHARE: usize = 1_000_000;

/// Bytes before a message: the compression flag and the length.
const PREFIX: usize = 5;

fn past() -> Past {
    Past {
        code: Code::ResourceExhausted,
        ..Past::setting("MEMORY_FULL", "--max-call-bytes", None, LIMIT)
    }
}

/// Returns a server on which reading a graph counts as small: twenty kilobytes for eight nodes.
async fn server() -> TestServer {
    TestServer::start_with(&[&format!("--max-call-bytes={LIMIT}"), "--max-nodes=8"]).await
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
    service
        .put_graph(put_graph(SHARE - PREFIX))
        .await
        .expect("it is at the limit");
    let refused = service
        .put_graph(put_graph(SHARE - PREFIX + 1))
        .await
        .unwrap_err();
    past().check(&refused);
    until_held(&server, 0.0).await;
    service
        .put_graph(put_graph(SHARE - PREFIX))
        .await
        .expect("what was refused holds nothing");
}

/// Starts a call that has sent this number of bytes of a longer message.
fn begin(channel: &Channel, bytes: usize) -> OpenCall {
    let mut message = vec![0];
    message.extend(10_000_000_u32.to_be_bytes());
    message.resize(bytes, 0);
    let call = OpenCall::open(channel, "/hlorank.v1.CostModelService/PutGraph");
    call.send(message);
    call
}

#[tokio::test]
async fn messages_that_do_not_end() {
    let server = server().await;
    let channel = server.channel().await;
    let begun: Vec<_> = (0..9).map(|_| begin(&channel, 100_000)).collect();
    until_held(&server, 900_000.0).await;
    past().check(&begin(&channel, 100_001).ended().await);
    until_held(&server, 900_000.0).await;
    let last = begin(&channel, 100_000);
    until_held(&server, 1_000_000.0).await;
    past()
        .refuses(
            server.cost_model().await,
            rank_request(kernel(), tiles(10_000)),
        )
        .await;
    let mut small = server.cost_model().await;
    small
        .rank_configs(rank_request(kernel(), tiles(1)))
        .await
        .expect("small calls have a reserve");

    drop((last, begun));
    until_held(&server, 0.0).await;
    let answer = server
        .rank(rank_request(kernel(), tiles(100)))
        .await
        .unwrap();
    assert_eq!(answer.ranking.len(), 100);
}

/// Sizes that only the server knows, because they depend on the decoded batch.
#[tokio::test]
async fn batches_that_grow() {
    let server = server().await;
    let past = past()
        .refuses(
            server.cost_model().await,
            rank_request(kernel(), tiles(20_000)),
        )
        .await;
    says!(past, "fewer configurations");
    until_held(&server, 0.0).await;
}
