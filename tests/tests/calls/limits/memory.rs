//! Limit of the bytes that all calls hold together, and of those of a run.

use hlorank_server::model::Model;
use hlorank_server::runtime::Runtime;
use hlorank_tests::prelude::*;

use crate::limits::open_call::OpenCall;
use crate::limits::request::Past;
use crate::limits::request::{kernel, text, tiles};

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

const HALIDE: &str = "halide-adams2019";

fn halide_chain(nodes: usize) -> (GraphHandle, Configurations) {
    let model = Model::load(
        &repository("models/registry/halide-adams2019/1"),
        &Runtime::load(&onnxruntime()).unwrap(),
        1,
    )
    .unwrap();
    let set = model.manifest().features.named().unwrap();
    let (node_columns, config_columns) = (set.node_features().len(), set.config_features().len());
    let ends = (1..nodes).map(|node| [node, node - 1].map(|node| u32::try_from(node).unwrap()));
    let features = vec![1.0; nodes * node_columns];
    let graph = FeatureGraph::new(
        set.name().to_owned(),
        nodes,
        features,
        ends.collect(),
        &Limits::default(),
    )
    .unwrap();
    let batch = NodeFeatureBatch::from_values(
        [nodes, config_columns],
        &vec![1.0; nodes * config_columns],
        &Limits::default(),
    );
    let batch = batch.unwrap();
    (
        GraphHandle::feature_graph(&graph),
        Configurations::FeatureSet(batch),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_is_too_large_for_a_model_is_refused_and_others_are_ranked() {
    let artifacts = Artifacts::all();
    let server = TestServer::start_with(&[
        &artifacts.flag(),
        "--workers=1",
        "--max-call-bytes=1073741824",
    ])
    .await;
    let client = server.client().await;
    let model = Some(HALIDE.parse().unwrap());
    let (graph, configurations) = halide_chain(20_000);
    let request = RankRequest::new(&graph, &configurations).model(model.clone());
    let refused = client.rank(&request).await.unwrap_err();
    assert_reason(&refused, "GRAPH_TOO_LARGE");
    let message = refused.to_string();
    says!(
        message,
        "20000 nodes",
        "19999 edges",
        "939524096 bytes",
        "--max-call-bytes"
    );
    let (graph, configurations) = halide_chain(1_000);
    client
        .rank(&RankRequest::new(&graph, &configurations).model(model))
        .await
        .unwrap();
}
