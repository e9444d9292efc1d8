//! The server has half a processor, as in a container with a quota: it runs for a while and is stopped for the same
//! time.

use hlorank_tests::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

use super::calls::{Question, ask, ended_well, pid, start};

/// The process runs a quarter of the time on two processors. A period is as long as the kernel's own, 100 ms.
const RUN: Duration = Duration::from_millis(25);
const HELD: Duration = Duration::from_millis(75);

const CLIENTS: usize = 6;
const LOAD: Duration = Duration::from_secs(3);
const QUESTION: Question = Question::new(24, 120);

/// Stops and continues a process again and again.
async fn hold(process: Pid) {
    loop {
        kill_process(process, Signal::STOP).unwrap();
        sleep(HELD).await;
        kill_process(process, Signal::CONT).unwrap();
        sleep(RUN).await;
    }
}

/// Returns the number of calls by reason, and asserts that all reasons are those of load.
async fn load(server: &ServerProcess, expected: &[u32]) -> BTreeMap<String, usize> {
    let mut clients = JoinSet::new();
    let started = Instant::now();
    for number in 0..CLIENTS {
        let (mut client, expected) = (server.patient(), expected.to_vec());
        clients.spawn(async move {
            let mut ended = Vec::new();
            while started.elapsed() < LOAD {
                // Some deadlines are too short for the quota, others are not.
                let timeout = format!("{}m", 20 << (number % 6));
                let request = with_headers(QUESTION.request(), &[("grpc-timeout", &timeout)]);
                ended.push(match client.rank_configs(request).await {
                    Ok(answer) => {
                        assert_eq!(bits(&answer.into_inner().scores), expected);
                        "OK".to_owned()
                    }
                    Err(status) => {
                        let codes = [Code::DeadlineExceeded, Code::ResourceExhausted];
                        assert!(codes.contains(&status.code()), "{status:?}");
                        let reason = status.get_details_error_info().map(|info| info.reason);
                        reason.unwrap_or_else(|| status.code().to_string())
                    }
                });
            }
            ended
        });
    }
    let mut counts = BTreeMap::new();
    for reason in clients.join_all().await.into_iter().flatten() {
        *counts.entry(reason).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_processor_answers_what_it_can_and_nothing_wrong() {
    let server = start(&[]);
    let mut client = server.cost_model().await;
    let expected = ask(&mut client, QUESTION).await.unwrap();
    let mut health = HealthClient::new(server.channel().await);
    let mut status = async || {
        let answer = health.check(HealthCheckRequest::default()).await;
        answer.unwrap().into_inner().status()
    };

    let process = pid(server.id());
    let loaded = async {
        let ended = load(&server, &expected).await;
        assert_eq!(status().await, ServingStatus::Serving);
        ended
    };
    let ended = tokio::select! {
        ended = loaded => ended,
        () = hold(process) => unreachable!(),
    };
    kill_process(process, Signal::CONT).unwrap();
    println!("{CLIENTS} clients in {LOAD:?}: {ended:?}");
    assert!(
        ended.get("OK").is_some_and(|&answered| answered > 0),
        "no goodput: {ended:?}"
    );
    assert!(ended.len() > 1, "no deadline was too short: {ended:?}");

    for _ in 0..20 {
        assert_eq!(ask(&mut client, QUESTION).await.unwrap(), expected);
    }
    assert_eq!(status().await, ServingStatus::Serving);
    ended_well(server).await;
}
