//! Calls with a deadline that the server alone keeps.

use std::time::Duration;

use hlorank_client::GraphHandle;
use hlorank_graph::{Digest, FEATURES, Graph};
use hlorank_proto::v1::{GraphFeatures, PutGraphRequest, RankConfigsRequest, graph::Source};
use hlorank_tests::{
    Scrape, TestServer, graph_by_hash, graph_of, grid_tiles, kernel_graph, packed_tiles, rank_request,
};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

/// The model that is asked where none is named.
pub(crate) const MODEL: &str = "tile-xla-cpu";

/// So many tiles of a graph that the server has, by the default model.
pub(crate) fn of_tiles(hash: Digest, tiles: i64) -> RankConfigsRequest {
    rank_request(graph_by_hash(hash.0.to_vec()), packed_tiles(&grid_tiles(tiles)))
}

/// A kernel of so many nodes that no other test has.
pub(crate) fn put_kernel(nodes: usize) -> PutGraphRequest {
    let features = GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * FEATURES * size_of::<f32>()].into(),
        ..GraphFeatures::default()
    };
    PutGraphRequest { graph: Some(kernel_graph(graph_of(Source::Features(features)))) }
}

pub(crate) fn within<T>(allowed: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(allowed);
    request
}

/// Has the server read a graph; returns its hash.
pub(crate) async fn put(server: &TestServer, graph: &Graph) -> Digest {
    server.client().await.put_graph(&GraphHandle::features(graph)).await.unwrap().hash
}

/// Asserts that a call was ended with this reason, which comes with the id of the call.
pub(crate) fn assert_refused(status: &Status, reason: &str) {
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some(reason), "{status}");
    let id = details.request_info().unwrap().request_id.clone();
    assert_eq!(status.metadata().get("x-request-id").unwrap().to_str().unwrap(), id);
}

/// What a counter of the default model says, all of its series together.
pub(crate) fn count(scrape: &Scrape, name: &str, label: (&str, &str)) -> f64 {
    let samples = scrape.samples.iter().filter(|sample| sample.name == name);
    samples.filter(|sample| sample.label(label.0) == Some(label.1)).map(|sample| sample.value).sum()
}
