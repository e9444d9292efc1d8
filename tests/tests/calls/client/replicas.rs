//! Every graph has its own replica. Another one takes its calls while that replica does not answer.

use hlorank_tests::prelude::*;

use crate::client::{
    replica::Replica,
    unanswering::{Gone, NO_SERVER},
};

/// Longer than a replica that did not answer stays last.
const ABSENCE: Duration = Duration::from_millis(1100);

/// Maximum wait for a change that comes soon, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns distinct graphs, enough for every replica to be assigned some.
fn graphs() -> Vec<GraphHandle> {
    (1..=40)
        .map(|nodes| GraphHandle::features(&kernel_of(nodes)))
        .collect()
}

async fn connect<'a>(endpoints: impl IntoIterator<Item = &'a str>) -> Client {
    Client::connect_replicas(endpoints, Connection::default())
        .await
        .unwrap()
}

async fn connect_all(replicas: &[Replica]) -> Client {
    connect(replicas.iter().map(|replica| replica.server.endpoint())).await
}

async fn rank_all(client: &Client, graphs: &[GraphHandle]) {
    let tiles = grid_configurations(5);
    for graph in graphs {
        let request = RankRequest::new(graph, &tiles);
        assert_eq!(client.rank(&request).await.unwrap().best.len(), 5);
    }
}

/// Returns the number of ranking calls that each replica has answered.
async fn ranked(replicas: &[Replica]) -> Vec<f64> {
    let mut ranked = vec![];
    for replica in replicas {
        ranked.push(replica.ranked().await);
    }
    ranked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_is_always_asked_about_at_the_same_replica() {
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(Replica::start().await);
    }
    rank_all(&connect_all(&replicas).await, &graphs()).await;
    let once = ranked(&replicas).await;
    assert!(
        once.iter().all(|&calls| calls > 0.0),
        "every one has its share: {once:?}"
    );
    let endpoints = replicas.iter().map(|replica| replica.server.endpoint());
    let other = connect(endpoints.rev()).await;
    rank_all(&other, &graphs()).await;
    let twice: Vec<f64> = once.iter().map(|calls| 2.0 * calls).collect();
    assert_eq!(ranked(&replicas).await, twice);
    let mut read = 0.0;
    for replica in &replicas {
        let misses = [("cache", "graphs_by_source"), ("result", "miss")];
        let scrape = replica.server.scrape().await;
        read += scrape.value("hlorank_cache_requests_total", &misses);
    }
    assert_eq!(read, 40.0, "each graph was read once, by one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graphs_of_a_killed_replica_go_elsewhere_and_come_back() {
    let mut replicas = vec![Replica::start().await, Replica::start().await];
    let client = connect_all(&replicas).await;
    let graphs = graphs();
    rank_all(&client, &graphs).await;
    let share = ranked(&replicas).await;

    let mut killed = replicas.remove(0);
    killed.kill().await;
    rank_all(&client, &graphs).await;
    let request = StreamRequest::new(&graphs[0]);
    let mut stream = client.rank_stream(&request).await.unwrap();
    stream.send(&grid_configurations(5)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 5);
    client.list_models().await.unwrap();

    replicas.insert(0, killed.restart().await);
    sleep(ABSENCE).await;
    let before = ranked(&replicas).await[1];
    rank_all(&client, &graphs).await;
    // The new server gets each graph by hash, which it does not know, and then whole.
    assert_eq!(ranked(&replicas).await, [2.0 * share[0], before + share[1]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_killed_replica_worked_on_is_answered_by_another() {
    let mut replicas = [Replica::start().await, Replica::start().await];
    let client = connect_all(&replicas).await;
    let graph = GraphHandle::features(&kernel_of(40));
    let large = grid_configurations(20_000);
    client.put_graph(&graph).await.unwrap();
    let call =
        tokio::spawn(async move { client.rank(&RankRequest::new(&graph, &large).top(1)).await });
    let since = Instant::now();
    'waiting: loop {
        for replica in &mut replicas {
            let scrape = replica.server.scrape().await;
            if scrape.value("hlorank_requests_in_progress", &[]) > 0.0 {
                replica.kill().await;
                break 'waiting;
            }
        }
        assert!(
            !call.is_finished() && since.elapsed() < PATIENCE,
            "nobody works on it"
        );
    }
    assert_eq!(call.await.unwrap().unwrap().best.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_a_replica_is_killed_and_started_again() {
    let (mut killed, other) = (Replica::start().await, Replica::start().await);
    let client = connect([killed.server.endpoint(), other.server.endpoint()]).await;
    let questions = graphs().into_iter().map(|graph| Question {
        graph,
        configurations: grid_configurations(5),
    });
    let load = Load::start(client, questions.collect(), Duration::from_millis(10));
    sleep(Duration::from_millis(500)).await;
    killed.kill().await;
    let (restarted, since) = (killed.restart().await, Instant::now());
    while restarted.ranked().await == 0.0 {
        assert!(since.elapsed() < PATIENCE, "its graphs have not come back");
        sleep(Duration::from_millis(20)).await;
    }
    // Asserts that no request failed.
    let _every_request_succeeded = rankings(load.finish().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_are_not_there_do_not_stop_the_others() {
    let (replica, gone) = (Replica::start().await, Gone::start().await);
    let connection = Connection {
        connect_timeout: Duration::from_millis(200),
        ..Connection::default()
    };
    let since = Instant::now();
    let listed = [NO_SERVER, &gone.endpoint, replica.server.endpoint()];
    let client = Client::connect_replicas(listed, connection).await.unwrap();
    rank_all(&client, &graphs()).await;
    sleep(ABSENCE).await;
    rank_all(&client, &graphs()).await;
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
}

#[tokio::test]
async fn where_none_is_there_all_are_reported() {
    let connect = |endpoints| Client::connect_replicas(endpoints, Connection::default());
    let error = connect(vec![NO_SERVER, "http://127.0.0.1:2"]).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "no connection to http://127.0.0.1:1, http://127.0.0.1:2"
    );
    let none = connect(vec![]).await;
    assert!(matches!(none, Err(ClientError::NoEndpoint)));
}
