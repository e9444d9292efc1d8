//! Calls with a deadline that only the server enforces.

use hlorank_graph::Graph;
use hlorank_tests::prelude::*;

/// Whole-graph model, which [`whole_graph_server`] lets score [`RUN_TILES`] in one run.
pub(crate) const WHOLE_GRAPH: &str = "tile-whole-graph";

/// Number of tiles of one run, which takes several seconds.
pub(crate) const RUN_TILES: i64 = 45_000;

/// Starts a server with one worker, so that one run delays all others.
pub(crate) async fn whole_graph_server() -> TestServer {
    let models = Artifacts::copy();
    for version in models.versions(WHOLE_GRAPH) {
        models.edit_manifest(&version, |manifest| {
            manifest["chunk_configs"] = RUN_TILES.into();
        });
    }
    // A run may take a quarter of these bytes, so that one run has all configurations.
    let flags = [&models.flag(), "--workers=1", "--max-call-bytes=16GiB"];
    TestServer::start_with(&flags).await
}

/// Returns a request to rank this number of tiles of a cached graph with the default model.
pub(crate) fn of_tiles(hash: Digest, tiles: i64) -> RankConfigsRequest {
    rank_request(
        graph_by_hash(hash.0.to_vec()),
        packed_tiles(&grid_tiles(tiles)),
    )
}

pub(crate) fn within<T>(allowed: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(allowed);
    request
}

/// Caches a graph on the server, and returns its hash.
pub(crate) async fn put(server: &TestServer, graph: &Graph) -> Digest {
    let graph = GraphHandle::features(graph);
    server.client().await.put_graph(&graph).await.unwrap().hash
}

/// Asserts that a call expired, and that the error has the id of the call.
pub(crate) fn assert_expired(status: &Status) {
    assert_eq!(reason(status), "DEADLINE_EXCEEDED", "{status}");
    let id = status.get_details_request_info().unwrap().request_id;
    let header = status.metadata().get("x-request-id").unwrap();
    assert_eq!(header.to_str().unwrap(), id);
}
