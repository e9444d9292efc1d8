//! A graph is sent once, then by hash, and again if the server has lost it.

use hlorank_graph::GraphSource;
use hlorank_tests::prelude::*;

use crate::client::unanswering::NO_SERVER;

/// Flags of a server that caches no graph.
const FORGETFUL: [&str; 1] = ["--graph-cache-bytes=1"];

fn layout_graph() -> MeasuredGraph {
    let is_layout = |graph: &MeasuredGraph| graph.graph.task() == Task::Layout;
    measured_graphs().into_iter().find(is_layout).unwrap()
}

async fn rank(
    client: &Client,
    handle: &GraphHandle,
    graph: &MeasuredGraph,
) -> Result<Ranking, ClientError> {
    client
        .rank(&RankRequest::new(handle, configurations(graph)).top(2))
        .await
}

/// Returns a client whose messages have room for configurations and a hash, but not for the graph.
async fn narrow_client(server: &TestServer, graph: &MeasuredGraph) -> Client {
    let GraphSource::HloModule(module) = &graph.source else {
        panic!("{} has no module", graph.name)
    };
    let connection = Connection {
        message_bytes: module.len(),
        ..Connection::default()
    };
    server.client_with(connection).await
}

/// Ranks by hash without sending the graph again.
async fn rank_bare_hash(server: &TestServer, graph: &MeasuredGraph) -> Result<usize, Status> {
    let Configurations::Layout(batch) = configurations(graph) else {
        panic!("{} has no layouts", graph.name)
    };
    let hash = graph.graph.hash().0.to_vec();
    let request = rank_request(
        graph_by_hash(hash),
        Configs::PackedLayoutConfigs(batch.to_packed()),
    );
    Ok(server
        .cost_model()
        .await
        .rank_configs(request)
        .await?
        .into_inner()
        .ranking
        .len())
}

#[tokio::test]
async fn a_graph_that_was_ranked_goes_by_hash() {
    let (server, graph) = (TestServer::start().await, layout_graph());
    let (handle, narrow) = (
        GraphHandle::from_measured(&graph),
        narrow_client(&server, &graph).await,
    );
    assert!(
        rank(&narrow, &handle, &graph).await.is_err(),
        "the graph itself does not fit"
    );
    let sent = rank(&server.client().await, &handle, &graph).await.unwrap();
    assert_eq!(handle.hash(), Some(graph.graph.hash()));
    assert_eq!(
        rank(&narrow, &handle, &graph).await.unwrap().best,
        sent.best
    );
}

#[tokio::test]
async fn a_graph_that_was_put_goes_by_hash() {
    let (server, graph) = (TestServer::start().await, layout_graph());
    let handle = GraphHandle::from_measured(&graph);
    let cached = server.client().await.put_graph(&handle).await.unwrap();
    assert_eq!(
        (cached.hash, handle.hash()),
        (graph.graph.hash(), Some(graph.graph.hash()))
    );
    let narrow = narrow_client(&server, &graph).await;
    assert_eq!(rank(&narrow, &handle, &graph).await.unwrap().best.len(), 2);
}

#[tokio::test]
async fn a_graph_that_the_server_lost_is_sent_again() {
    let (server, graph) = (TestServer::start_with(&FORGETFUL).await, layout_graph());
    let (client, handle) = (server.client().await, GraphHandle::from_measured(&graph));
    let first = rank(&client, &handle, &graph).await.unwrap();
    for _ in 0..2 {
        assert_eq!(handle.hash(), Some(graph.graph.hash()));
        assert_eq!(
            rank(&client, &handle, &graph).await.unwrap().best,
            first.best
        );
    }
}

#[tokio::test]
async fn a_hash_alone_is_refused_by_a_server_that_lost_the_graph() {
    let (server, graph) = (TestServer::start_with(&FORGETFUL).await, layout_graph());
    server
        .client()
        .await
        .put_graph(&GraphHandle::from_measured(&graph))
        .await
        .unwrap();
    let status = rank_bare_hash(&server, &graph).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let reason = status
        .get_error_details()
        .error_info()
        .map(|info| info.reason.clone());
    assert_eq!(reason.as_deref(), Some("GRAPH_NOT_CACHED"));
}

#[tokio::test]
async fn a_hash_alone_is_enough_for_a_server_that_keeps_the_graph() {
    let (server, graph) = (TestServer::start().await, layout_graph());
    server
        .client()
        .await
        .put_graph(&GraphHandle::from_measured(&graph))
        .await
        .unwrap();
    assert_eq!(
        rank_bare_hash(&server, &graph).await.unwrap(),
        graph.measurements.unwrap().run_times.len()
    );
}

#[tokio::test]
async fn a_refusal_is_reported_with_its_code() {
    let server = TestServer::start().await;
    let error = server
        .client()
        .await
        .get_model("other", None)
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("no model is named `other`"),
        "{error}"
    );
    assert!(
        error.to_string().ends_with("(NOT_FOUND, MODEL_NOT_FOUND)"),
        "{error}"
    );
    assert_reason(&error, "MODEL_NOT_FOUND");
}

#[tokio::test]
async fn no_server_is_an_error_of_the_connection() {
    let error = Client::connect(NO_SERVER, Connection::default())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}
