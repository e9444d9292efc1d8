//! hlorank compared with the same models behind Python gRPC and behind `MLServer`: the same requests, the same driver,
//! one table. Prints that it is skipped if `make target/baselines/ready` was not run. Arguments select workloads by name.

mod drive;
mod process;
mod report;
mod running;
mod start;
mod system;
mod v2;
mod wire;
mod workload;

use std::process::ExitCode;

use hlorank_tests::prelude::*;
use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

use crate::{
    drive::drive,
    report::Round,
    running::Running,
    system::System,
    workload::{Phase, Workload},
};

/// Number of rounds. Systems are measured in turn, and the best round of each counts, because a busy neighbour slows
/// single rounds.
const ROUNDS: u64 = 4;
/// Tolerance of scores, relative to the largest.
const TOLERANCE: f32 = 1e-4;
/// Number of clients, each of which waits for an answer before its next request.
const CLIENTS: usize = 4;
const WARM_UP: Duration = Duration::from_millis(500);
const WARM_UP_REQUESTS: usize = 2000;
const LOADED: Duration = Duration::from_secs(2);
const ALONE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    if !repository("target/baselines/ready").exists() {
        println!(
            "skipped: baselines needs Python packages; `make target/baselines/ready` installs them (about 400 MB)"
        );
        return ExitCode::SUCCESS;
    }
    let mut workloads = Workload::all();
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name).collect();
    let chosen = chosen_parts(&names);
    workloads.retain(|workload| chosen.contains(&workload.name));
    let graphs = repository("target/baselines/graphs");
    for workload in &workloads {
        workload.write_graph(&graphs);
    }
    let runtime = Runtime::new().expect("threads can be started");
    runtime.block_on(async {
        // The systems are stopped in either case.
        tokio::select! {
            () = compare(&workloads, &graphs) => ExitCode::SUCCESS,
            () = told_to_stop() => ExitCode::FAILURE,
        }
    })
}

/// Prints one table per workload, and writes its figures.
async fn compare(workloads: &[Workload], graphs: &Path) {
    let mut systems = Vec::new();
    for system in System::ALL {
        systems.push(Running::start(system, graphs, workloads, CLIENTS).await);
    }
    for workload in workloads {
        check(&systems, workload).await;
        let mut best: Vec<Option<Round>> = vec![None; systems.len()];
        for round in 0..ROUNDS {
            for (running, best) in systems.iter().zip(&mut best) {
                let measured = measure(running, workload, round).await;
                *best = Some(best.map_or(measured, |best| best.or_better(measured)));
            }
        }
        let best: Vec<Round> = best.into_iter().flatten().collect();
        report::write(workload, &best);
    }
}

/// Waits for SIGTERM or SIGINT.
async fn told_to_stop() {
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be waited for");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = ctrl_c() => {}
    }
}

/// Panics unless every system returns the scores of the first one, hlorank.
async fn check(systems: &[Running], workload: &Workload) {
    let expected = systems[0].scores(workload).await;
    let largest = expected
        .iter()
        .fold(0.0_f32, |largest, score| largest.max(score.abs()));
    for running in systems {
        let scores = running.scores(workload).await;
        let (name, what) = (running.system.name(), workload.what);
        assert_eq!(scores.len(), workload.configs, "{name}: {what}");
        for (config, (score, expected)) in scores.iter().zip(&expected).enumerate() {
            let agrees = (score - expected).abs() <= TOLERANCE * largest;
            assert!(
                agrees,
                "{name} scores {score}, hlorank {expected}: configuration {config} of {what}"
            );
        }
    }
}

/// Measures a system under load, and with one client.
async fn measure(running: &Running, workload: &Workload, round: u64) -> Round {
    let load = async |phase: Phase, clients: usize, requests: usize, time: Duration| {
        let bodies = running.bodies(workload, round, phase, requests);
        let channels = &running.channels[..clients];
        drive(channels, running.system.wire(), bodies, time).await
    };
    let warm = load(Phase::WarmUp, CLIENTS, WARM_UP_REQUESTS, WARM_UP).await;
    let expected = |time| requests(warm.requests_per_second, time);
    let loaded = load(Phase::Loaded, CLIENTS, expected(LOADED), LOADED).await;
    let alone = load(Phase::Alone, 1, expected(ALONE), ALONE).await;
    Round {
        requests_per_second: loaded.requests_per_second,
        alone: alone.latencies.median(),
    }
}

/// Returns the number of requests to prepare for this time: 1.5 times the rate of the warm-up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of thousands"
)]
fn requests(per_second: f64, time: Duration) -> usize {
    (per_second * time.as_secs_f64() * 1.5) as usize + 2 * CLIENTS
}
