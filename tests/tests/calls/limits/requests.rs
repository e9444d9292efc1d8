//! Limit of the requests in progress, including streams.

use hlorank_tests::prelude::*;

use crate::limits::{
    request::{kernel, tiles},
    servers::Past,
};

#[tokio::test]
async fn requests_in_progress() {
    let server = TestServer::start_with(&["--max-requests=3"]).await;
    let client = server.client_without_retries().await;
    let graph = GraphHandle::features(&kernel_of(3));
    let tiles_of_client = Configurations::Tile(grid_tiles(4));
    let rank = async || {
        client
            .rank(&RankRequest::new(&graph, &tiles_of_client))
            .await
    };
    let stream = async || {
        client
            .rank_stream(&StreamRequest::new(&graph))
            .await
            .unwrap()
    };
    let (first, second) = (stream().await, stream().await);
    assert_eq!(rank().await.expect("it is the third").best.len(), 4);

    let third = stream().await;
    let past = Past {
        code: Code::ResourceExhausted,
        ..Past::setting("OVERLOADED", "--max-requests", None, 3)
    };
    past.refuses(server.cost_model().await, rank_request(kernel(), tiles(4)))
        .await;
    // The client receives the rejection before it has sent everything.
    past.refuses(
        server.cost_model().await,
        rank_request(kernel(), tiles(2_000_000)),
    )
    .await;
    let error: ClientError = rank().await.unwrap_err();
    let delay = error.refusal().unwrap().retry_after().unwrap();
    assert!(delay >= Duration::from_millis(200), "{delay:?}");

    drop(first);
    while rank().await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop((second, third));
}
