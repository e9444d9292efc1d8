//! A call that would wait for more queued work than the maximum is refused at once. One that finds an empty queue is taken
//! however large, as the call that fills the queue shows.

use hlorank_graph::prune;
use hlorank_tests::prelude::*;

/// Tiles that keep a worker busy for seconds.
const LARGE: i64 = 45_000;

/// Less time than those need.
const FLAGS: [&str; 2] = ["--workers=1", "--max-queued-nodes=20000"];

/// Fills the queue by a call without a time limit: with one, the server would refuse it on a machine that is so busy that
/// the call seems to take longer.
async fn fill(server: &TestServer) -> JoinHandle<Result<(), ClientError>> {
    let endless = Connection {
        timeout: None,
        retries: 0,
        ..Connection::default()
    };
    let client = server.client_with(endless).await;
    let large = tokio::spawn(async move {
        let graph = GraphHandle::features(&kernel_of(40));
        let tiles = grid_configurations(LARGE);
        let request = RankRequest::new(&graph, &tiles).top(1);
        client.rank(&request).await.map(drop)
    });
    server
        .until_metrics(|scrape| {
            assert!(
                !large.is_finished(),
                "the queue is not full any more, or the call was refused"
            );
            scrape.value("hlorank_queued_nodes", &[]) > 100_000.0
        })
        .await;
    large
}

#[tokio::test]
async fn what_would_wait_for_too_much_is_refused_at_once() {
    let server = TestServer::start_with(&FLAGS).await;
    let client = server.client_without_retries().await;
    let graph = GraphHandle::features(&kernel_of(39));
    let rank = async |tiles| {
        let tiles = grid_configurations(tiles);
        client.rank(&RankRequest::new(&graph, &tiles)).await
    };
    // After several runs the server knows how long one takes.
    for cached in [2, 4, 6, 8, 10] {
        rank(cached).await.unwrap();
    }
    let large = fill(&server).await;

    let error = rank(20).await.unwrap_err();
    assert!(!large.is_finished(), "it did not wait for the other call");
    assert_reason(&error, "QUEUE_FULL");
    says!(error.to_string(), "--max-queued-nodes");
    let delay = error.refusal().unwrap().retry_after().unwrap();
    assert!(
        (Duration::from_millis(500)..=Duration::from_secs(30)).contains(&delay),
        "it comes from what is left, which takes seconds: {delay:?}"
    );
    let cached = rank(10).await;
    cached.expect("nothing of it has to be evaluated");

    large.abort();
    server
        .until_metrics(|scrape| scrape.value("hlorank_queued_nodes", &[]) == 0.0)
        .await;
    rank(20).await.expect("there is room again");
}

#[tokio::test]
async fn a_stream_that_was_begun_goes_on() {
    let server = TestServer::start_with(&FLAGS).await;
    let graph = GraphHandle::features(&kernel_of(38));
    let client = server.client().await;
    let request = StreamRequest::new(&graph);
    let mut stream = client.rank_stream(&request).await.unwrap();
    stream.send(&grid_configurations(10)).await.unwrap();
    stream.scores().await.unwrap().unwrap();
    let large = fill(&server).await;
    stream.send(&grid_configurations(30)).await.unwrap();
    let scores = stream.scores().await.unwrap().unwrap();
    assert_eq!(scores.reuse.rows_evaluated, 20);
    assert!(!large.is_finished(), "the queue was full meanwhile");
    large.abort();
    assert_eq!(stream.finish().await.unwrap().scored, 40);
}

#[tokio::test]
async fn a_whole_graph_model_counts_the_nodes_that_it_takes_once_an_order() {
    let server = TestServer::start_with(&[&Artifacts::copy().flag(), FLAGS[0], FLAGS[1]]).await;
    let case = golden_cases(&fixture("registry/layout-permuted/1")).remove(0);
    let (configs, kept) = (case.configurations.len(), prune(&case.graph).nodes.len());
    let client = server.client_without_retries().await;
    let graph = GraphHandle::features(&case.graph);
    client.put_graph(&graph).await.unwrap();
    let large = fill(&server).await;
    for (model, nodes) in [
        ("layout-cross-configuration", configs * case.graph.len()),
        ("layout-even-chunks", configs * kept),
        ("layout-permuted", 3 * configs * kept),
    ] {
        let model = Some(model.parse().unwrap());
        let request = RankRequest::new(&graph, &case.configurations).model(model);
        let refused = client.rank(&request).await.unwrap_err();
        assert_reason(&refused, "QUEUE_FULL");
        says!(refused.to_string(), format!("takes {nodes};"));
    }
    large.abort();
}
