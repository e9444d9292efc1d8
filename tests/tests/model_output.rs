//! A model that gives no finite score fails the call, and only that: nobody gets a ranking by NaN.

use hlorank_client::{GraphHandle, RankRequest};
use hlorank_tests::{Artifacts, TestServer, configurations, fixture, read_graphs};
use tonic::Code;

/// Overwrites the first weights of a head, 64 numbers, with NaN.
fn spoil(head: &mut [u8]) {
    const RAW_DATA_OF_64_FLOATS: [u8; 3] = [0x4a, 0x80, 0x02];
    let weights = head.windows(3).position(|bytes| bytes == RAW_DATA_OF_64_FLOATS).unwrap() + 3;
    head[weights..][..256].as_chunks_mut::<4>().0.fill(f32::NAN.to_le_bytes());
}

#[tokio::test]
async fn a_score_that_is_not_finite_fails_the_call() {
    let models = Artifacts::copy();
    for version in models.versions("tile-xla-cpu-sage") {
        models.edit_file(&version, "head.onnx", |head| spoil(head));
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let kernel = &read_graphs(&fixture("measured/tile_kernels.pb"))[0];
    let graph = GraphHandle::of(kernel);
    let request = || RankRequest::new(&graph, configurations(kernel));
    let client = server.client().await;
    let spoiled = request().model(Some("tile-xla-cpu-sage".parse().unwrap()));
    let error = client.rank(&spoiled).await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.reason()), (Code::Internal, Some("MODEL_OUTPUT_INVALID")));
    assert!(
        refusal.message().contains("`tile-xla-cpu-sage` gave NaN for configuration 0"),
        "{}",
        refusal.message()
    );
    assert!(client.rank(&request()).await.is_ok(), "other models go on");
}
