//! After SIGTERM, accepted calls are answered, new ones are rejected, and no client delays the exit.

use std::{error::Error as _, io::ErrorKind};

use hlorank_tests::prelude::*;
use tokio::net::TcpStream;

use super::{
    calls::{PATIENCE, Question, ask, ask_as, start, stream_as, until_in_progress},
    frozen::Frozen,
};

/// Number of clients, each with its own connection.
const CLIENTS: usize = 12;

/// Drain time that no stop needs.
const DRAIN: Duration = Duration::from_mins(1);

const QUESTION: Question = Question::new(12, 60);

/// Calls of a client: the number of answers, and the error of the next call.
struct Asked {
    answered: Vec<String>,
    refused: Status,
}

/// Starts clients, half of which make unary calls and half streams, until one of their calls fails.
async fn load(server: &ServerProcess, expected: &[u32]) -> JoinSet<Asked> {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = server.cost_model().await;
        let expected = expected.to_vec();
        clients.spawn(async move {
            let mut answered = Vec::new();
            loop {
                let id = format!("load-{number}-{}", answered.len());
                let scores = match number % 2 {
                    0 => ask_as(&mut client, QUESTION, &id).await,
                    _ => stream_as(&mut client, QUESTION, &id).await,
                };
                match scores {
                    Ok(scores) => assert_eq!(scores, expected, "{id}"),
                    Err(refused) => return Asked { answered, refused },
                }
                answered.push(id);
            }
        });
    }
    clients
}

/// Returns whether a call may be retried because the server did not accept it and its connection is closed. Tonic has
/// its own codes for calls that had not left the client or not arrived.
fn is_clean(refused: &Status) -> bool {
    refused.code() == Code::Unavailable || refused.source().is_some()
}

/// Asserts that the calls of the load that the server reports as accepted are those that were answered, and that the other
/// ones may be retried.
fn assert_none_lost(stopped: &Stopped, asked: &[Asked]) {
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    for Asked { refused, .. } in asked {
        assert!(is_clean(refused), "{refused:?}");
    }
    let lines = stopped.lines().into_iter().filter(is_access);
    let calls = lines.map(|mut line| {
        let id = line["span"]["request_id"].as_str().unwrap().to_owned();
        (id, line["fields"]["code"].take())
    });
    let taken: BTreeMap<_, _> = calls.filter(|(id, _)| id.starts_with("load-")).collect();
    let answered = asked.iter().flat_map(|asked| asked.answered.clone());
    let expected: BTreeMap<_, _> = answered.map(|id| (id, Value::from("OK"))).collect();
    assert_eq!(taken, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_that_was_accepted_is_lost_and_no_frozen_client_holds_up_the_exit() {
    const SHORT: Duration = Duration::from_secs(6);
    let server = start(&["--drain-seconds=6"]);
    let expected = ask(&mut server.cost_model().await, QUESTION).await.unwrap();
    let frozen = [
        Frozen::before_it_spoke,
        Frozen::before_a_call,
        Frozen::in_mid_request,
        Frozen::in_a_stream,
        Frozen::without_reading,
    ];
    let frozen = frozen.map(|frozen| frozen(&server));
    let clients = load(&server, &expected).await;
    let are_calling =
        |scrape: &Scrape| scrape.sum("hlorank_requests_total", &[]) > 4.0 * CLIENTS as f64;
    server.until_metrics(are_calling).await;

    let signalled = Instant::now();
    server.signal("TERM");
    let asked = clients.join_all().await;
    // Meanwhile the server waits for the frozen clients.
    let (status, text) = http_get(server.metrics_address(), "/readyz").await;
    assert_eq!(status, 503);
    assert_eq!(text, "not ready: the server is stopping\n");
    let refused = TcpStream::connect(server.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let stopped = server.stopped(signalled).await;
    drop(frozen);

    assert_none_lost(&stopped, &asked);
    says!(stopped.log, "the drain time was over");
    assert!(!stopped.log.contains("panic"), "{}", stopped.log);
    let answered: usize = asked.iter().map(|asked| asked.answered.len()).sum();
    assert!(answered > 2 * CLIENTS, "{answered} calls");
    assert!(stopped.took < SHORT + PATIENCE, "{:?}", stopped.took);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_exits_once_calls_are_answered_and_health_is_reported() {
    let server = start(&["--drain-seconds=60"]);
    let mut client = server.cost_model().await;
    let expected = ask(&mut client, QUESTION).await.unwrap();
    let mut health = HealthClient::new(server.channel().await);
    let mut watching = Vec::new();
    for service in ["", "hlorank.v1.CostModelService", TILE_MODEL] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut statuses = health.watch(request).await.unwrap().into_inner();
        let first = statuses.message().await.unwrap().unwrap();
        assert_eq!(first.status(), ServingStatus::Serving);
        watching.push(statuses);
    }
    // This call takes a while and is accepted before SIGTERM.
    let long = Question::new(60, 4_000);
    let long = tokio::spawn(async move { ask(&mut client, long).await });
    until_in_progress(&server, 1).await;
    let clients = load(&server, &expected).await;

    let signalled = Instant::now();
    server.signal("TERM");
    for mut statuses in watching {
        let last = statuses.message().await.unwrap().unwrap();
        assert_eq!(last.status(), ServingStatus::NotServing);
        let end = statuses.message().await.unwrap();
        assert_eq!(end, None, "a health watch ends after NOT_SERVING");
    }
    assert_eq!(long.await.unwrap().unwrap().len(), 4_000);
    let asked = clients.join_all().await;
    let stopped = server.stopped(signalled).await;
    assert_none_lost(&stopped, &asked);
    assert!(stopped.took < DRAIN / 2, "{:?}", stopped.took);
    says!(stopped.log, "\"stopped\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_calls_that_ignore_the_end_of_their_connections_do_not_delay_the_exit() {
    let server = start(&["--drain-seconds=60"]);
    let _silent = [Frozen::before_it_spoke, Frozen::before_a_call].map(|frozen| frozen(&server));
    let mut pinging = Frozen::before_a_call(&server);
    assert!(pinging.ping());
    let pings = thread::spawn(move || {
        while pinging.ping() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let stopped = server.stop().await;
    pings.join().unwrap();
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    says!(stopped.log, "\"stopped\"");
    assert!(stopped.took < DRAIN / 2, "{:?}", stopped.took);
}
