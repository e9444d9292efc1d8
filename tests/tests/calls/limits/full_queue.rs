use hlorank_graph::prune;
use hlorank_tests::prelude::*;

/// Tiles that keep a worker busy for seconds.
const LARGE: i64 = 45_000;

/// Less time than those need.
const FLAGS: [&str; 2] = ["--workers=1", "--max-queued-nodes=20000"];

/// Returns a client without retries, and a graph that the server has cached.
async fn client(server: &TestServer, nodes: u8) -> (Client, GraphHandle) {
    let client = server.client_without_retries().await;
    let graph = GraphHandle::features(&kernel_of(nodes));
    client.put_graph(&graph).await.unwrap();
    (client, graph)
}

/// Fills the queue by a call without a time limit: with one, the server would refuse it on a machine that is so busy that
/// the call seems to take longer.
async fn fill(server: &TestServer) -> JoinHandle<Result<(), ClientError>> {
    let (_, graph) = client(server, 40).await;
    let endless = Connection {
        timeout: None,
        retries: 0,
        ..Connection::default()
    };
    let client = server.client_with(endless).await;
    let large = tokio::spawn(async move {
        let tiles = grid_configurations(LARGE);
        client
            .rank(&RankRequest::new(&graph, &tiles).top(1))
            .await
            .map(drop)
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

async fn until_empty(server: &TestServer) {
    server
        .until_metrics(|scrape| scrape.value("hlorank_queued_nodes", &[]) == 0.0)
        .await;
}

#[tokio::test]
async fn what_would_wait_for_too_much_is_refused_at_once() {
    let server = TestServer::start_with(&FLAGS).await;
    let (client, graph) = client(&server, 39).await;
    let (cached, new) = (grid_configurations(10), grid_configurations(20));
    // After several runs the server knows how long one takes.
    for part in [
        grid_configurations(2),
        grid_configurations(4),
        grid_configurations(6),
        grid_configurations(8),
    ] {
        client.rank(&RankRequest::new(&graph, &part)).await.unwrap();
    }
    client
        .rank(&RankRequest::new(&graph, &cached))
        .await
        .unwrap();
    let large = fill(&server).await;

    let error = client
        .rank(&RankRequest::new(&graph, &new))
        .await
        .unwrap_err();
    assert!(!large.is_finished(), "it did not wait for the other call");
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.reason()),
        (Code::ResourceExhausted, Some("QUEUE_FULL")),
        "{error}"
    );
    assert!(refusal.message().contains("--max-queued-nodes"), "{error}");
    let delay = refusal.retry_after().unwrap();
    assert!(
        (Duration::from_millis(200)..=Duration::from_secs(30)).contains(&delay),
        "{delay:?}"
    );
    assert!(
        delay > Duration::from_millis(500),
        "it comes from what is left, which takes seconds: {delay:?}"
    );
    client
        .rank(&RankRequest::new(&graph, &cached))
        .await
        .expect("nothing of it has to be evaluated");

    large.abort();
    until_empty(&server).await;
    client
        .rank(&RankRequest::new(&graph, &new))
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn a_call_that_finds_nothing_to_wait_for_is_taken_however_large() {
    let server = TestServer::start_with(&FLAGS).await;
    let (client, graph) = client(&server, 12).await;
    let tiles = grid_configurations(5_000);
    let ranking = client
        .rank(&RankRequest::new(&graph, &tiles).top(1))
        .await
        .unwrap();
    assert!(
        ranking.reuse.rows_evaluated == 5_000
            && server.scrape().await.value("hlorank_queued_nodes", &[]) == 0.0
    );
}

#[tokio::test]
async fn a_stream_that_was_begun_goes_on() {
    let server = TestServer::start_with(&FLAGS).await;
    let (client, graph) = client(&server, 38).await;
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
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
async fn a_client_comes_again_when_it_was_told_to() {
    let server = TestServer::start_with(&FLAGS).await;
    let (_, graph) = client(&server, 37).await;
    // On a busy machine, the server expects that what is left takes half a minute.
    let long_deadline = Connection {
        timeout: Some(Duration::from_mins(5)),
        ..Connection::default()
    };
    let patient = server.client_with(long_deadline).await;
    let large = fill(&server).await;
    let stop = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        large.abort();
    };
    let tiles = grid_configurations(20);
    let request = RankRequest::new(&graph, &tiles);
    let (ranked, ()) = tokio::join!(patient.rank(&request), stop);
    ranked.expect("it was tried again");
}

#[tokio::test]
async fn a_whole_graph_model_counts_the_nodes_that_it_takes_once_an_order() {
    let server = TestServer::start_with(&[&Artifacts::copy().flag(), FLAGS[0], FLAGS[1]]).await;
    let case = golden_cases(&fixture("registry/layout-permuted/1")).remove(0);
    let (configs, kept) = (case.configurations.len(), prune(&case.graph).nodes.len());
    let (client, _) = client(&server, 39).await;
    let graph = GraphHandle::features(&case.graph);
    client.put_graph(&graph).await.unwrap();
    let large = fill(&server).await;
    for (model, nodes) in [
        ("layout-cross-configuration", configs * case.graph.len()),
        ("layout-even-chunks", configs * kept),
        ("layout-permuted", 3 * configs * kept),
    ] {
        let request =
            RankRequest::new(&graph, &case.configurations).model(Some(model.parse().unwrap()));
        let refused = client.rank(&request).await.unwrap_err();
        let refusal = refused.refusal().unwrap();
        assert_eq!(refusal.reason(), Some("QUEUE_FULL"), "{model}: {refusal:?}");
        assert!(
            refusal.message().contains(&format!("takes {nodes};")),
            "{model}: {}",
            refusal.message()
        );
    }
    large.abort();
}
