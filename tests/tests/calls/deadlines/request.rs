//! Calls with a deadline that only the server enforces.

use hlorank_graph::Graph;
use hlorank_tests::prelude::*;

/// Default model of tiles.
pub(crate) const MODEL: &str = TILE_MODEL;

/// Returns a request to rank this number of tiles of a cached graph with the default model.
pub(crate) fn of_tiles(hash: Digest, tiles: i64) -> RankConfigsRequest {
    rank_request(
        graph_by_hash(hash.0.to_vec()),
        packed_tiles(&grid_tiles(tiles)),
    )
}

/// Returns a request to cache a kernel of this number of nodes, which no other test uses.
pub(crate) fn put_kernel(nodes: usize) -> PutGraphRequest {
    let features = GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * FEATURES * size_of::<f32>()].into(),
        ..GraphFeatures::default()
    };
    PutGraphRequest {
        graph: Some(kernel_graph(graph_of(Source::Features(features)))),
    }
}

pub(crate) fn within<T>(allowed: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(allowed);
    request
}

/// Caches a graph on the server, and returns its hash.
pub(crate) async fn put(server: &TestServer, graph: &Graph) -> Digest {
    server
        .client()
        .await
        .put_graph(&GraphHandle::features(graph))
        .await
        .unwrap()
        .hash
}

/// Asserts that a call failed with this reason, and that the error has the id of the call.
pub(crate) fn assert_refused(status: &Status, reason: &str) {
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let details = status.get_error_details();
    assert_eq!(
        details.error_info().map(|info| info.reason.as_str()),
        Some(reason),
        "{status}"
    );
    let id = details.request_info().unwrap().request_id.clone();
    assert_eq!(
        status
            .metadata()
            .get("x-request-id")
            .unwrap()
            .to_str()
            .unwrap(),
        id
    );
}
