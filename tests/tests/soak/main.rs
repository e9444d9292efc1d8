//! A server under mixed shapes, reloads and killed clients over a long time: its answers stay correct and its memory
//! bounded. The test takes twenty seconds, or the time that the environment sets:
//!
//! ```console
//! $ HLORANK_SOAK_SECONDS=3600 cargo test --release -p hlorank-tests --test soak
//! ```
//!
//! Results are written to `target/soak`. The program also runs as the server and as clients, in processes of their own,
//! so it has no test harness.

mod calls;
mod clients;
mod plan;
mod record;
mod server;

use std::env;

use hlorank_tests::prelude::*;
use tokio::{sync::watch, time::Instant};

use self::{calls::Calls, clients::Clients, plan::Plan, record::Record};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let is_other =
        |argument: &String| !argument.starts_with('-') && !"soak".contains(argument.as_str());
    match arguments.first().map(String::as_str) {
        Some("server") => server::run(&arguments),
        Some("client") => clients::run(&arguments[1], arguments[2].parse().expect("a seed")),
        // Like a test harness that is asked for a list or for another test, this runs nothing.
        _ if arguments
            .iter()
            .any(|argument| argument == "--list" || is_other(argument)) => {}
        _ => Runtime::new()
            .expect("a runtime")
            .block_on(soak(&Plan::of_environment())),
    }
}

/// Maximum time of a call, generous for a busy machine.
const DEADLINE: Duration = Duration::from_mins(2);

/// Maximum resident memory of a short run in MiB. An hour, which loads 57 versions beside 14 models, ends at 569.
const MOST_RESIDENT: f64 = 600.0;

/// Maximum ratio of the resident memory at the end to that after a third, on a line through the rest.
const MOST_GROWTH: f64 = 1.05;

async fn soak(plan: &Plan) {
    println!("soak: {plan:?}");
    let artifacts = Artifacts::all();
    let server = server::start(&artifacts);
    let client = connect(server.endpoint()).await;
    let start = Instant::now();
    let (stop, stopped) = watch::channel(());
    let mut calls = Calls::start(client, plan.rate, stopped.clone());
    let clients = tokio::spawn(Clients::start(server.endpoint()).kill_until(stopped.clone()));
    let mut record = Record::default();
    let sampling = async {
        while start.elapsed() < plan.length {
            sleep(plan.sample_every).await;
            record.add(start.elapsed(), server.resident_bytes(), calls.take());
            record.write();
        }
        drop(stop);
    };
    let reloading = server::reload_until(stopped, &artifacts, &server, plan.reload_every);
    let ((), reloads) = tokio::join!(sampling, reloading);
    let killed = clients.await.expect("clients are killed");
    calls.ended().await;
    record.add(start.elapsed(), server.resident_bytes(), calls.take());
    record.write();
    // Those of killed clients end, too.
    server.until_idle().await;
    let stopped = server.stop().await;
    assert!(stopped.status.success(), "{stopped:?}");
    let mut errors = stopped.lines();
    errors.retain(|line| line["level"] == "ERROR");
    assert!(errors.is_empty(), "{errors:?}");
    report(plan, &record, killed, reloads);
}

async fn connect(endpoint: &str) -> Client {
    let connection = Connection {
        timeout: Some(DEADLINE),
        connect_timeout: DEADLINE,
        ..Connection::default()
    };
    Client::connect(endpoint, connection)
        .await
        .expect("a server")
}

fn report(plan: &Plan, record: &Record, killed: usize, reloads: usize) {
    let (calls, failed) = (record.calls(), record.failed());
    let load = format!(
        "{calls} calls of mixed shapes, {reloads} reloads and {killed} killed clients in {:?}",
        plan.length
    );
    println!("{load}");
    println!("{}", record.summary());
    assert!(failed.is_empty(), "{failed:?}");
    assert!(calls > 50 && killed > 3 && reloads > 0, "{load}");
    if plan.is_long() {
        let growth = record.growth();
        assert!(
            growth <= MOST_GROWTH,
            "resident memory at the end is {growth} times that after a third"
        );
    } else {
        // Caches still fill in a short run, so its slope means nothing.
        let most = record.most_resident();
        assert!(
            most < MOST_RESIDENT,
            "{most} MiB resident, of at most {MOST_RESIDENT}"
        );
    }
}
