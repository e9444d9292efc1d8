//! Health and readiness over HTTP.

use hlorank_tests::prelude::*;

#[tokio::test]
async fn a_server_is_healthy_and_ready() {
    let server = TestServer::start().await;
    let address = server.metrics_address();
    assert_eq!(
        http_get(address, "/healthz").await,
        (200, "ok\n".to_owned())
    );
    assert_eq!(
        http_get(address, "/readyz").await,
        (200, "ready\n".to_owned())
    );
    assert_eq!(http_get(address, "/nothing").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_finishes_its_calls_is_healthy_but_not_ready() {
    let server = TestServer::start().await;
    let address = server.metrics_address();
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    let stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    let stopping = tokio::spawn(server.stop());
    while http_get(address, "/readyz").await.0 == 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (status, reason) = http_get(address, "/readyz").await;
    assert_eq!(
        (status, reason.as_str()),
        (503, "not ready: the server is stopping\n")
    );
    assert_eq!(http_get(address, "/healthz").await.0, 200);
    assert_eq!(
        http_get(address, "/metrics").await.0,
        200,
        "what happens to the last calls is seen"
    );
    drop(stream);
    stopping.await.unwrap();
}

#[tokio::test]
async fn metrics_can_be_off() {
    let server = TestServer::start_with(&["--metrics-listen=off"]).await;
    assert!(server.metrics().is_none());
    server.client().await.list_models().await.unwrap();
}
