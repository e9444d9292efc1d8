//! A call is retried only if a retry may help.

use hlorank_tests::prelude::*;

use crate::client::replica::Replica;

#[tokio::test]
async fn a_server_that_is_full_is_asked_again_when_it_says() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let client = server.client().await;
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(5));
    let holding = client.rank_stream(&StreamRequest::new(&graph)).await;
    let holding = holding.unwrap();
    let request = RankRequest::new(&graph, &tiles);
    let (since, release) = (Instant::now(), Duration::from_millis(300));
    let (ranking, ()) = tokio::join!(client.rank(&request), async {
        sleep(release).await;
        drop(holding);
    });
    assert_eq!(ranking.unwrap().best.len(), 5);
    assert!(since.elapsed() > release);
    let overloaded = [("reason", "OVERLOADED")];
    let refused = server.scrape().await;
    let refused = refused.value("hlorank_errors_total", &overloaded);
    assert!((1.0..=4.0).contains(&refused), "{refused} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_is_waited_for_and_one_that_stays_away_is_reported() {
    let mut replica = Replica::start().await;
    let connection = |retries| Connection {
        retries,
        ..Connection::default()
    };
    let patient = replica.server.client_with(connection(8)).await;
    let hasty = replica.server.client_with(connection(1)).await;
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(5));
    let request = RankRequest::new(&graph, &tiles);
    let first = patient.rank(&request).await.unwrap();
    replica.kill().await;
    let error = hasty.list_models().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Unavailable), "{error}");
    let expected = format!("no connection to {}", replica.server.endpoint());
    assert_eq!(error.to_string(), expected);

    let (again, replica) = tokio::join!(patient.rank(&request), replica.restart());
    assert_eq!(again.unwrap().best, first.best);
    // First by hash, which the new server does not know, and then whole.
    assert_eq!(replica.ranked().await, 2.0);
}
