//! Work stops once nobody waits for it: after a cancelled call, and after a deadline.

use std::time::Duration;

use hlorank_client::{GraphHandle, RankRequest};
use hlorank_graph::{Configurations, Digest};
use hlorank_proto::v1::{
    ConfigBatch, Graph as GraphMessage, PackedTileConfigs, RankConfigsRequest, RankConfigsStart,
    RankConfigsStreamRequest, config_batch::Configs as BatchConfigs, graph::Source,
    rank_configs_request::Configs, rank_configs_stream_request::Part,
};
use hlorank_tests::{TestServer, grid_tiles, kernel_of};
use tonic::{Code, Request};
use tonic_types::StatusExt;

/// Enough to keep every worker busy for much longer than the calls wait.
const TILES: i64 = 45_000;
const PATIENCE: Duration = Duration::from_millis(400);

fn large() -> Configurations {
    Configurations::Tile(grid_tiles(TILES))
}

fn packed(configurations: Configurations) -> PackedTileConfigs {
    let Configurations::Tile(tiles) = configurations else { panic!("tiles") };
    tiles.to_packed().unwrap()
}

fn by_hash(hash: Digest) -> GraphMessage {
    GraphMessage { source: Some(Source::GraphHash(hash.0.to_vec().into())), ..GraphMessage::default() }
}

/// How many of the large batch's rows were evaluated for the calls before, a while after they ended.
async fn evaluated_before(server: &TestServer, graph: &GraphHandle) -> u64 {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let large = large();
    let request = RankRequest::new(graph, &large).top(1);
    server.client().await.rank(&request).await.unwrap().reuse.rows_cached
}

#[tokio::test]
async fn a_cancelled_call_stops() {
    let server = TestServer::start().await;
    let (client, graph, large) = (server.client().await, GraphHandle::features(&kernel_of(40)), large());
    client.put_graph(&graph).await.unwrap();
    let request = RankRequest::new(&graph, &large).top(1);
    let cancelled = tokio::time::timeout(PATIENCE, client.rank(&request)).await;
    assert!(cancelled.is_err(), "the call was over before it could be cancelled");
    let evaluated = evaluated_before(&server, &graph).await;
    assert!(
        0 < evaluated && evaluated < TILES.unsigned_abs() / 2,
        "{evaluated} of {TILES} rows were evaluated"
    );
}

#[tokio::test]
async fn an_expired_stream_is_told_and_stops() {
    let server = TestServer::start().await;
    let graph = GraphHandle::features(&kernel_of(40));
    let hash = server.client().await.put_graph(&graph).await.unwrap().hash;
    let start = RankConfigsStart { graph: Some(by_hash(hash)), ..RankConfigsStart::default() };
    let batch = ConfigBatch { configs: Some(BatchConfigs::PackedTileConfigs(packed(large()))) };
    let parts =
        [Part::Start(start), Part::Batch(batch)].map(|part| RankConfigsStreamRequest { part: Some(part) });
    let mut request = Request::new(tokio_stream::iter(parts));
    request.set_timeout(PATIENCE);
    let mut answers = server.cost_model().await.rank_configs_stream(request).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().is_some(), "the stream has started");
    let expired = answers.message().await.unwrap_err();
    assert_eq!(expired.code(), Code::DeadlineExceeded, "{expired}");
    assert_eq!(expired.get_details_error_info().unwrap().reason, "DEADLINE_EXCEEDED");
    let evaluated = evaluated_before(&server, &graph).await;
    assert!(
        0 < evaluated && evaluated < TILES.unsigned_abs() / 2,
        "{evaluated} of {TILES} rows were evaluated"
    );
}

#[tokio::test]
async fn an_expired_call_is_told_and_stops() {
    let server = TestServer::start().await;
    let graph = GraphHandle::features(&kernel_of(40));
    let hash = server.client().await.put_graph(&graph).await.unwrap().hash;
    let mut request = Request::new(RankConfigsRequest {
        graph: Some(by_hash(hash)),
        configs: Some(Configs::PackedTileConfigs(packed(large()))),
        ..RankConfigsRequest::default()
    });
    request.set_timeout(PATIENCE);
    let expired = server.patient().rank_configs(request).await.unwrap_err();
    assert_eq!(expired.code(), Code::DeadlineExceeded, "{expired}");
    let evaluated = evaluated_before(&server, &graph).await;
    assert!(
        0 < evaluated && evaluated < TILES.unsigned_abs() / 2,
        "{evaluated} of {TILES} rows were evaluated"
    );
}
