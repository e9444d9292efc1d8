//! A score that is not finite fails its call and no other, so no ranking contains NaN.

use hlorank_tests::prelude::*;

#[tokio::test]
async fn a_score_that_is_not_finite_fails_the_call() {
    let models = Artifacts::copy();
    models.spoil_opcode(SMALL_TILE_MODEL, 119);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let graph = GraphHandle::features(&chain_kernel(&[119], &[8]));
    let tiles = Configurations::Tile(grid_tiles(4));
    let request = || RankRequest::new(&graph, &tiles);
    let client = server.client().await;
    let spoiled = request().model(Some(SMALL_TILE_MODEL.parse().unwrap()));
    let error = client.rank(&spoiled).await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.reason()),
        (Code::Internal, Some("MODEL_OUTPUT_INVALID"))
    );
    let message = refusal.message();
    says!(
        message,
        format!("`{SMALL_TILE_MODEL}` gave NaN for configuration 0")
    );
    assert!(client.rank(&request()).await.is_ok(), "other models go on");
}
