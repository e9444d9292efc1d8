//! Limit of the bytes that all calls hold together, and of those of a run.

use hlorank_server::model::Model;
use hlorank_server::runtime::Runtime;
use hlorank_tests::prelude::*;

use crate::limits::{
    open_call::OpenCall,
    request::{Past, dot_and, kernel, tiles},
};

/// Limit of the server. One client may hold three quarters of the seven eighths that are not reserved for small calls.
const LIMIT: usize = 1_523_810;
const SHARE: usize = 1_000_000;

/// Bytes before a message: the compression flag and the length.
const PREFIX: usize = 5;

fn past() -> Past {
    Past::setting("MEMORY_FULL", "--max-call-bytes", None, LIMIT)
}

/// Returns a server on which reading a graph counts as small: twenty kilobytes for eight nodes.
async fn server() -> TestServer {
    TestServer::start_with(&[&format!("--max-call-bytes={LIMIT}"), "--max-nodes=8"]).await
}

/// Waits until calls hold this number of bytes.
async fn until_held(server: &TestServer, bytes: f64) {
    server
        .until_metrics(|scrape| scrape.value("hlorank_call_bytes", &[]) == bytes)
        .await;
}

/// Returns a request of this number of bytes, most of which are spaces in its graph.
fn put_graph(bytes: usize) -> PutGraphRequest {
    let padded = |spaces| {
        let text = dot_and([]) + &" ".repeat(spaces);
        let graph = Some(kernel_graph(graph_of_text(text)));
        PutGraphRequest { graph }
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
    let mut put = async |bytes: usize| service.put_graph(put_graph(bytes - PREFIX)).await;
    put(SHARE).await.expect("it is at the limit");
    past().check(&put(SHARE + 1).await.unwrap_err());
    until_held(&server, 0.0).await;
    put(SHARE).await.expect("what was refused holds nothing");
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
    let rank = async |count| server.rank(rank_request(kernel(), tiles(count))).await;
    let begun: Vec<_> = (0..9).map(|_| begin(&channel, 100_000)).collect();
    until_held(&server, 900_000.0).await;
    past().check(&begin(&channel, 100_001).ended().await);
    until_held(&server, 900_000.0).await;
    let last = begin(&channel, 100_000);
    until_held(&server, 1_000_000.0).await;
    past().check(&rank(10_000).await.unwrap_err());
    rank(1).await.expect("small calls have a reserve");

    drop((last, begun));
    until_held(&server, 0.0).await;
    rank(100).await.expect("there is room again");
    // How much this batch takes shows when it is decoded.
    let refused = rank(20_000).await.unwrap_err();
    past().saying("fewer configurations").check(&refused);
    until_held(&server, 0.0).await;
}

const HALIDE: &str = "halide-adams2019";

fn halide_chain(nodes: usize) -> (GraphHandle, Configurations) {
    let folder = repository("models/registry").join(HALIDE).join("1");
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    let model = Model::load(&folder, &runtime, 1).unwrap();
    let set = model.manifest().features.named().unwrap();
    let limits = Limits::default();
    let ends = (1..nodes).map(|node| [node, node - 1].map(|node| u32::try_from(node).unwrap()));
    let features = vec![1.0; nodes * set.node_features().len()];
    let name = set.name().to_owned();
    let graph = FeatureGraph::new(name, nodes, features, ends.collect(), &limits).unwrap();
    let columns = set.config_features().len();
    let values = vec![1.0; nodes * columns];
    let batch = NodeFeatureBatch::from_values([nodes, columns], &values, &limits).unwrap();
    (
        GraphHandle::feature_graph(&graph),
        Configurations::FeatureSet(batch),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_is_too_large_for_a_model_is_refused_and_others_are_ranked() {
    let models = all_models_flag();
    let flags = [&models, "--workers=1", "--max-call-bytes=1073741824"];
    let server = TestServer::start_with(&flags).await;
    let client = server.client().await;
    let rank = async |nodes| {
        let (graph, configurations) = halide_chain(nodes);
        let request = RankRequest::new(&graph, &configurations);
        client
            .rank(&request.model(Some(HALIDE.parse().unwrap())))
            .await
    };
    let refused = rank(20_000).await.unwrap_err();
    assert_reason(&refused, "GRAPH_TOO_LARGE");
    says!(
        refused.to_string(),
        "20000 nodes",
        "19999 edges",
        "939524096 bytes",
        "--max-call-bytes"
    );
    rank(1_000).await.unwrap();
}
