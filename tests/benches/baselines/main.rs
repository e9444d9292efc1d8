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
    drive::{Load, drive},
    report::MeasuredOutcome,
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
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name).collect();
    if let Some(unknown) = chosen.iter().find(|name| !names.contains(&name.as_str())) {
        println!("no workload `{unknown}`; there are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    workloads
        .retain(|workload| chosen.is_empty() || chosen.iter().any(|name| name == workload.name));
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
        let mut measured = vec![MeasuredOutcome::default(); systems.len()];
        for round in 0..ROUNDS {
            for (running, measured) in systems.iter().zip(&mut measured) {
                let (loaded, alone) = measure(running, workload, round).await;
                measured.keep(loaded, alone);
            }
        }
        report::print(workload, &measured);
        report::write_figures(workload, &measured);
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
async fn measure(running: &Running, workload: &Workload, round: u64) -> (Load, Load) {
    let load = async |phase: Phase, clients: usize, requests: usize, time: Duration| {
        let bodies = running.bodies(workload, round, phase, requests);
        let before = running.processor_time();
        let load = drive(
            &running.channels[..clients],
            running.system.wire(),
            bodies,
            time,
        )
        .await;
        load.with_processor_time(running.processor_time().saturating_sub(before))
    };
    let rate = load(Phase::WarmUp, CLIENTS, WARM_UP_REQUESTS, WARM_UP)
        .await
        .requests_per_second();
    let loaded = load(Phase::Loaded, CLIENTS, requests(rate, LOADED), LOADED).await;
    (
        loaded,
        load(Phase::Alone, 1, requests(rate, ALONE), ALONE).await,
    )
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
