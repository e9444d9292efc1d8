//! After SIGTERM, accepted calls are answered, new ones are rejected, and no client delays the exit.

use std::{error::Error as _, io::ErrorKind};

use hlorank_tests::prelude::*;
use tokio::net::TcpStream;

use super::{
    calls::{PATIENCE, Question, ask, ask_as, start, stream_as, until, until_in_progress},
    frozen::Frozen,
};

/// Number of clients, each with its own connection.
const CLIENTS: usize = 12;

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

async fn under_load(server: &ServerProcess) {
    until("a load", async || {
        server.scrape().await.sum("hlorank_requests_total", &[]) > 4.0 * CLIENTS as f64
    })
    .await;
}

/// Returns the calls of the load that the server reports as accepted and that were not answered.
fn lost(stopped: &Stopped, asked: &[Asked]) -> Vec<(String, Value)> {
    let lines = stopped
        .lines()
        .into_iter()
        .filter(|line| line["target"] == "access");
    let calls = lines.map(|mut line| {
        let id = line["span"]["request_id"].as_str().unwrap().to_owned();
        (id, line["fields"]["code"].take())
    });
    let taken: Vec<_> = calls.filter(|(id, _)| id.starts_with("load-")).collect();
    let answered: BTreeSet<&String> = asked.iter().flat_map(|asked| &asked.answered).collect();
    assert!(
        taken.len() >= answered.len(),
        "the log tells of {} calls of {}",
        taken.len(),
        answered.len()
    );
    taken
        .into_iter()
        .filter(|(id, code)| code != "OK" || !answered.contains(id))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_that_was_accepted_is_lost_and_no_frozen_client_holds_up_the_exit() {
    const DRAIN: Duration = Duration::from_secs(6);
    let server = start(&[&format!("--drain-seconds={}", DRAIN.as_secs())]);
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
    under_load(&server).await;

    let signalled = Instant::now();
    server.signal("TERM");
    let asked = clients.join_all().await;
    // Meanwhile the server waits for the frozen clients.
    let (status, text) = http_get(server.metrics_address(), "/readyz").await;
    assert_eq!(
        (status, text.as_str()),
        (503, "not ready: the server is stopping\n")
    );
    let address = server.address();
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let stopped = server.stopped(signalled).await;
    drop(frozen);

    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    says!(stopped.log, "the drain time was over");
    assert!(!stopped.log.contains("panic"), "{}", stopped.log);
    for Asked { refused, .. } in &asked {
        assert!(is_clean(refused), "{refused:?}");
    }
    let answered: usize = asked.iter().map(|asked| asked.answered.len()).sum();
    let lost = lost(&stopped, &asked);
    assert!(answered > 2 * CLIENTS, "{answered} calls");

    let late = stopped.took.as_secs_f64() - DRAIN.as_secs_f64();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(late < PATIENCE.as_secs_f64(), "{:?}", stopped.took);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_exits_once_calls_are_answered_and_health_is_reported() {
    let server = start(&["--drain-seconds=60"]);
    let mut client = server.cost_model().await;
    let expected = ask(&mut client, QUESTION).await.unwrap();
    let mut health = HealthClient::new(server.channel().await);
    let watched = ["", "hlorank.v1.CostModelService", TILE_MODEL];
    let mut watching = Vec::new();
    for service in watched {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut statuses = health.watch(request).await.unwrap().into_inner();
        assert_eq!(
            statuses.message().await.unwrap().unwrap().status(),
            ServingStatus::Serving
        );
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
        assert_eq!(
            statuses.message().await.unwrap().unwrap().status(),
            ServingStatus::NotServing
        );
        assert!(
            statuses.message().await.unwrap().is_none(),
            "the stream of a health watch ends after NOT_SERVING"
        );
    }
    assert_eq!(long.await.unwrap().unwrap().len(), 4_000);
    let asked = clients.join_all().await;
    for Asked { refused, .. } in &asked {
        assert!(is_clean(refused), "{refused:?}");
    }
    let stopped = server.stopped(signalled).await;
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    assert!(stopped.took < Duration::from_secs(30), "{:?}", stopped.took);
    says!(stopped.log, "\"stopped\"");
    let lost = lost(&stopped, &asked);
    assert!(lost.is_empty(), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_calls_that_ignore_the_end_of_their_connections_do_not_delay_the_exit() {
    let server = start(&["--drain-seconds=60"]);
    let expected = ask(&mut server.cost_model().await, QUESTION).await.unwrap();
    let _silent = [Frozen::before_it_spoke, Frozen::before_a_call].map(|frozen| frozen(&server));
    let mut pinging = Frozen::before_a_call(&server);
    let clients = load(&server, &expected).await;
    under_load(&server).await;
    assert!(pinging.ping());
    let pings = std::thread::spawn(move || {
        while pinging.ping() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let stopped = server.stop().await;
    pings.join().unwrap();
    let asked = clients.join_all().await;
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    says!(stopped.log, "\"stopped\"");
    let lost = lost(&stopped, &asked);
    assert!(lost.is_empty(), "{lost:?}");
    assert!(
        stopped.took < Duration::from_secs(30),
        "half of the drain time: {:?}",
        stopped.took
    );
    println!("the server ended after {:?}", stopped.took);
}
