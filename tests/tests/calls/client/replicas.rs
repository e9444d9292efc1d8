//! Every graph has its own replica. Another one takes its calls while that replica does not answer.

use hlorank_tests::prelude::*;

use crate::client::{
    replica::{Replica, graphs},
    unanswering::{Gone, NO_SERVER},
};

/// Longer than a replica that did not answer stays last.
const ABSENCE: Duration = Duration::from_millis(1100);

/// Maximum wait for a change that comes soon, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

async fn rank_all(client: &Client, graphs: &[GraphHandle]) {
    let tiles = grid_configurations(5);
    for graph in graphs {
        assert_eq!(
            client
                .rank(&RankRequest::new(graph, &tiles))
                .await
                .unwrap()
                .best
                .len(),
            5
        );
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

fn endpoints(replicas: &[Replica]) -> Vec<&str> {
    replicas.iter().map(Replica::endpoint).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_is_always_asked_about_at_the_same_replica() {
    let replicas = [
        Replica::start().await,
        Replica::start().await,
        Replica::start().await,
    ];
    let mut listed = endpoints(&replicas);
    let client = Client::connect_replicas(&listed, Connection::default())
        .await
        .unwrap();
    rank_all(&client, &graphs()).await;
    let once = ranked(&replicas).await;
    assert!(
        once.iter().all(|&calls| calls > 0.0),
        "every one has its share: {once:?}"
    );
    listed.reverse();
    let other = Client::connect_replicas(listed, Connection::default())
        .await
        .unwrap();
    rank_all(&other, &graphs()).await;
    assert_eq!(
        ranked(&replicas).await,
        once.iter().map(|calls| 2.0 * calls).collect::<Vec<_>>()
    );
    let mut read = 0.0;
    for replica in &replicas {
        let misses = [("cache", "graphs_by_source"), ("result", "miss")];
        read += replica
            .scrape()
            .await
            .value("hlorank_cache_requests_total", &misses);
    }
    assert_eq!(read, 40.0, "each graph was read once, by one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graphs_of_a_killed_replica_go_elsewhere_and_come_back() {
    let mut replicas = vec![Replica::start().await, Replica::start().await];
    let client = Client::connect_replicas(endpoints(&replicas), Connection::default())
        .await
        .unwrap();
    let graphs = graphs();
    rank_all(&client, &graphs).await;
    let share = ranked(&replicas).await;

    let mut killed = replicas.remove(0);
    killed.kill().await.unwrap();
    rank_all(&client, &graphs).await;
    let tile = grid_configurations(5);
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graphs[0]))
        .await
        .unwrap();
    stream.send(&tile).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 5);
    client.list_models().await.unwrap();

    replicas.insert(0, killed.restart().await);
    tokio::time::sleep(ABSENCE).await;
    let before = ranked(&replicas).await[1];
    rank_all(&client, &graphs).await;
    // The new server gets each graph by hash, which it does not know, and then whole.
    assert_eq!(ranked(&replicas).await, [2.0 * share[0], before + share[1]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_killed_replica_worked_on_is_answered_by_another() {
    let mut replicas = [Replica::start().await, Replica::start().await];
    let client = Client::connect_replicas(endpoints(&replicas), Connection::default())
        .await
        .unwrap();
    let (graph, large) = (
        GraphHandle::features(&kernel_of(40)),
        grid_configurations(20_000),
    );
    client.put_graph(&graph).await.unwrap();
    let call =
        tokio::spawn(async move { client.rank(&RankRequest::new(&graph, &large).top(1)).await });
    let since = Instant::now();
    'waiting: loop {
        for replica in &mut replicas {
            if replica
                .scrape()
                .await
                .value("hlorank_requests_in_progress", &[])
                > 0.0
            {
                replica.kill().await.unwrap();
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
    let listed = [killed.endpoint(), other.endpoint()];
    let client = Client::connect_replicas(listed, Connection::default())
        .await
        .unwrap();
    let questions = graphs().into_iter().map(|graph| Question {
        graph,
        configurations: grid_configurations(5),
    });
    let load = Load::start(client, questions.collect(), Duration::from_millis(10));
    tokio::time::sleep(Duration::from_millis(500)).await;
    killed.kill().await.unwrap();
    let (restarted, since) = (killed.restart().await, Instant::now());
    while restarted.ranked().await == 0.0 {
        assert!(since.elapsed() < PATIENCE, "its graphs have not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let answers = load.finish().await;
    let errors: Vec<_> = answers
        .iter()
        .filter_map(|answer| answer.ranking.as_ref().err())
        .collect();
    assert!(
        errors.is_empty(),
        "{} of {}, such as {}",
        errors.len(),
        answers.len(),
        errors[0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_are_not_there_do_not_stop_the_others() {
    let (server, gone) = (Replica::start().await, Gone::start().await);
    let connection = Connection {
        connect_timeout: Duration::from_millis(200),
        ..Connection::default()
    };
    let since = Instant::now();
    let listed = [NO_SERVER, &gone.endpoint, server.endpoint()];
    let client = Client::connect_replicas(listed, connection).await.unwrap();
    rank_all(&client, &graphs()).await;
    tokio::time::sleep(ABSENCE).await;
    rank_all(&client, &graphs()).await;
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
}

#[tokio::test]
async fn where_none_is_there_all_are_reported() {
    let connect = |endpoints| Client::connect_replicas(endpoints, Connection::default());
    let error = connect(vec![NO_SERVER, "http://127.0.0.1:2"])
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection to http://127.0.0.1:1, http://127.0.0.1:2"
    );
    assert!(matches!(
        connect(vec![]).await,
        Err(ClientError::NoEndpoint)
    ));
}
