//! Attacks a server in the ways of `hlorank_tests::attackers`, each for `ATTACK_SECONDS` beside a well-behaved client, and
//! prints what that client saw. Then sends the worst requests of each stage of a call to a server with one worker, and attacks
//! a new server in all ways at once for a minute, in a cgroup of 1 GiB if systemd
//! runs. Arguments select attacks by parts of their names. Prints that it is skipped if `ATTACK_SECONDS` is not set, so that
//! `make bench` does not take minutes longer.

mod attacks;
mod limits;
mod measure;
mod overrun;
mod policies;
mod report;
mod site;
mod versions;

use std::{process::ExitCode, time::Duration};

use hlorank_tests::attackers::STAGES;
use tokio::runtime::{Builder, Runtime};

use crate::{
    attacks::{ATTACKS, Named, start_stage},
    limits::Limits,
    measure::measure,
    overrun::overrun,
    report::Report,
    site::{Confinement, Site},
};

/// Duration of the attack in all ways at once.
const ALL: Duration = Duration::from_mins(1);

const ALL_NAME: &str = "all of them at once";

fn main() -> ExitCode {
    let Some(time) = seconds() else {
        println!("skipped: `make attack` runs the attacks");
        return ExitCode::SUCCESS;
    };
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let is_chosen =
        |name: &str| chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str()));
    let attacks: Vec<&Named> = ATTACKS
        .iter()
        .filter(|attack| is_chosen(attack.name))
        .collect();
    // The attackers have a thread of their own, so that they delay the well-behaved client as little as possible.
    let attackers = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a thread");
    let client = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let is_within = client.block_on(run(&attacks, is_chosen, time, &attackers));
    if is_within {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs the attacks, prints the table, and returns whether all limits held.
async fn run(
    attacks: &[&Named],
    is_chosen: impl Fn(&str) -> bool,
    time: Duration,
    attackers: &Runtime,
) -> bool {
    let mut site = Site::start(Confinement::None);
    println!("quiet: {time:?}");
    let quiet = measure(&site, time, Vec::new).await;
    let mut report = Report::new(Limits::of(quiet.seen.p99), &quiet);
    for attack in attacks {
        println!("{}: {time:?}", attack.name);
        let running = || vec![attack.start(&site, attackers)];
        report.add(attack.name, &measure(&site, time, running).await);
        site = site.replaced_if_dead();
    }
    drop(site);
    let mut site = Site::start(Confinement::OneWorker);
    for stage in STAGES.iter().filter(|stage| is_chosen(stage.name)) {
        println!("{}: {time:?}, one worker", stage.name);
        let running = || vec![start_stage(stage, &site, attackers)];
        let measured = measure(&site, time, running).await;
        site = site.replaced_if_dead();
        report.add_stage(stage.name, &measured, overrun(&site, stage).await);
        site = site.replaced_if_dead();
    }
    drop(site);
    if is_chosen(ALL_NAME) {
        let site = Site::start(Confinement::Gibibyte);
        println!("{ALL_NAME}: {ALL:?}, {}", site.confinement());
        let running = || {
            ATTACKS
                .iter()
                .map(|attack| attack.start(&site, attackers))
                .collect()
        };
        report.add(ALL_NAME, &measure(&site, ALL, running).await);
    }
    report.finish()
}

fn seconds() -> Option<Duration> {
    let text = std::env::var("ATTACK_SECONDS").ok()?;
    Some(Duration::from_secs(
        text.parse()
            .expect("ATTACK_SECONDS is a whole number of seconds"),
    ))
}
