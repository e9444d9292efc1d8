//! `hlorank worker`: measures configurations of a space with a command, beside other workers of the same search.

mod command;
mod space;

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
    process,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use hlorank_arguments::positive_duration;
use hlorank_client::{
    Adapt, Client, MeasuredOutcome, ReportDetails, SuggestRequest, Suggestions,
    v1::{Budget, Lease, LeaseRequest, MeasurementFailure, RenewLeasesRequest, SearchState},
};
use serde::Serialize;
use tokio::{
    select,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
    time::{sleep, timeout},
};

use self::{
    command::MeasuringCommand,
    space::{GivenConfiguration, WorkerSpace},
};
use crate::{
    error::CommandError,
    output::{Format, counted, words},
    progress::Progress,
    server::Server,
};

const EXAMPLES: &str = "\
Examples:
  hlorank worker --space gemm.json --target \"H100, CUDA 13\" -- python bench.py
  hlorank worker --space gemm.json --target \"H100, CUDA 13\" --budget 2h --time-limit 30s -- ./bench

The command gets a configuration as JSON on its standard input and in HLORANK_CONFIGURATION. Its last line is the mean run time in \
seconds, {\"seconds\": 0.0021, \"repeats\": 5}, or {\"failure\": \"compile\"}: compile, crash, wrong-result, timeout or invalid. A command \
that fails without one has crashed.";

/// How a worker measures.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Worker {
    /// File of the space, as `Space.write` of Python writes it
    #[arg(long, value_name = "FILE")]
    space: PathBuf,
    /// What is measured on: hardware, compiler and flags
    #[arg(long, value_name = "NAME")]
    target: String,
    /// What tells searches of one space on one target apart
    #[arg(long, value_name = "NAME", default_value = "")]
    search: String,
    /// Measurements of all workers, or time, that end the search
    ///
    /// A number, or a time such as 2h [default: when all is measured]
    #[arg(long, value_name = "N|TIME", value_parser = budget)]
    budget: Option<Budget>,
    /// Name of the machine, which is kept with its measurements
    ///
    /// [default: the name of the host]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Maximum time for one configuration; longer ones fail
    ///
    /// In seconds, or with a unit, such as 500ms or 2m [default: none]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    time_limit: Option<Duration>,
    /// Time until another worker measures what one left
    ///
    /// From 5s to 1h
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "60s")]
    ttl: Duration,
    /// Command that measures one configuration
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
    #[command(flatten)]
    server: Server,
}

/// What a worker did.
#[derive(Debug, Default, Serialize)]
struct WorkerReport {
    measured: usize,
    failed: usize,
    /// The fastest configuration of this worker, and its run time in seconds.
    best: Option<serde_json::Value>,
    best_seconds: Option<f64>,
    /// Why the search ended.
    ended: &'static str,
}

/// A worker at work.
struct Measuring<'a> {
    worker: &'a Worker,
    client: Client,
    space: Arc<WorkerSpace>,
    name: String,
    machine: String,
    stop: StopSignals,
    progress: Progress,
    report: WorkerReport,
    /// Number of measurements since the fastest one.
    since_improvement: u32,
}

/// Signals that end a worker.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// Time between two attempts while the server does not answer: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// Leases are renewed at this fraction of their time, but at least this often.
const RENEWALS: u32 = 3;
const MAX_RENEWAL: Duration = Duration::from_mins(1);

/// Maximum time to give back leases, and to report, once the worker was told to stop.
const MAX_STOP: Duration = Duration::from_secs(5);

/// Reads a number of measurements, or a time.
fn budget(text: &str) -> Result<Budget, String> {
    if let Ok(measurements) = text.parse::<u32>() {
        return match measurements {
            0 => Err("expected at least 1 measurement, or a time such as 2h".to_owned()),
            _ => Ok(Budget {
                measurements,
                time: None,
            }),
        };
    }
    Ok(Budget {
        measurements: 0,
        time: Some(wire(positive_duration(text)?)),
    })
}

fn wire(duration: Duration) -> prost_types::Duration {
    duration.try_into().unwrap_or_default()
}

impl Worker {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let space = WorkerSpace::read(&self.space)?;
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy().into_owned();
        let count = self.budget.map_or(0, |budget| budget.measurements as usize);
        let count = Some(count).filter(|count| *count > 0);
        let mut stop = StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        let counts = count.into_iter().chain(space.count());
        let progress = Progress::over_configurations(counts.min().unwrap_or_default());
        let connecting = until_answered(&progress, || self.server.connect());
        let client = stop.unless_stopped(connecting).await;
        let client = client.unwrap_or(Err(CommandError::Stopped))?;
        let mut measuring = Measuring {
            // Names are at most 64 bytes, and the end of a name of a host tells least.
            name: format!(
                "{}/{}",
                &host[..host.floor_char_boundary(48)],
                process::id()
            ),
            machine: self.machine.clone().unwrap_or(host),
            client,
            space: Arc::new(space),
            stop,
            progress,
            report: WorkerReport::default(),
            since_improvement: 0,
            worker: &self,
        };
        measuring.run().await?;
        let report = measuring.report;
        drop(measuring.progress);
        Ok(format.print(&report)?)
    }
}

/// Tries something until the server answers, with longer and longer pauses.
async fn until_answered<T>(
    progress: &Progress,
    mut attempt: impl AsyncFnMut() -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt().await {
            Err(error) if error.is_no_answer() => {
                progress.say(&format!("{error}; trying again in {pause:?}"));
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
            done => return done,
        }
    }
}

impl StopSignals {
    /// Waits for something; nothing if the worker is told to stop before.
    async fn unless_stopped<T>(&mut self, awaited: impl Future<Output = T>) -> Option<T> {
        select! {
            done = awaited => Some(done),
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
        }
    }
}

impl Measuring<'_> {
    /// Measures until the search ends.
    async fn run(&mut self) -> Result<(), CommandError> {
        let space = Arc::clone(&self.space);
        let request = space
            .request()
            .adapt(Some(&Adapt::new(&self.worker.target).use_stored()))
            .lease(LeaseRequest {
                worker: self.name.clone(),
                ttl: Some(wire(self.worker.ttl)),
                search: self.worker.search.clone(),
                budget: self.worker.budget,
                machine: self.machine.clone(),
            });
        let seed = u64::from(process::id());
        let mut request = Some(request);
        loop {
            let asked = request.take().expect("it is put back");
            let asked = asked.since_improvement(self.since_improvement, seed);
            let given = self.ask(&asked).await?;
            request = Some(asked);
            self.report.ended = match given.state {
                SearchState::Exhausted => "everything is measured",
                SearchState::BudgetSpent => "the budget is spent",
                SearchState::Decided => "the search is decided",
                SearchState::AllLeased => {
                    self.progress.say("others measure all that is left");
                    let waited = self.stop.unless_stopped(sleep(given.retry_after)).await;
                    waited.ok_or(CommandError::Stopped)?;
                    continue;
                }
                _ => {
                    let first = given.suggestions.first();
                    let first = first.and_then(|each| space.given(each.config, &given.configs));
                    let lease = given.leases.into_iter().next();
                    let Some((first, lease)) = first.zip(lease) else {
                        continue;
                    };
                    self.measure(&first, lease, &given.graph_hash.0).await?;
                    continue;
                }
            };
            return Ok(());
        }
    }

    /// Asks what to measure, once the server answers.
    async fn ask(&mut self, request: &SuggestRequest<'_>) -> Result<Suggestions, CommandError> {
        let client = &self.client;
        let ask = until_answered(&self.progress, async || Ok(client.suggest(request).await?));
        let asked = self.stop.unless_stopped(ask).await;
        asked.unwrap_or(Err(CommandError::Stopped))
    }

    /// Measures a configuration, and reports what came of it.
    async fn measure(
        &mut self,
        given: &GivenConfiguration,
        lease: Lease,
        graph_hash: &[u8],
    ) -> Result<(), CommandError> {
        let renewal = RenewLeasesRequest {
            graph_hash: graph_hash.to_vec().into(),
            target: self.worker.target.clone(),
            search: self.worker.search.clone(),
            worker: self.name.clone(),
            ttl: Some(wire(self.worker.ttl)),
            ids: vec![lease.id.clone()],
            configs: vec![lease.config.clone()],
            give_back: false,
        };
        let renewing = self.renew(renewal.clone());
        let running = MeasuringCommand::start(&self.worker.command, &given.json);
        let measured = match running {
            Ok(running) => {
                let outcome = running.outcome(self.worker.time_limit);
                let outcome = self.stop.unless_stopped(outcome).await;
                outcome.unwrap_or(Err(CommandError::Stopped))
            }
            Err(error) => Err(error),
        };
        let outcome = match measured {
            Ok(outcome) => outcome,
            Err(error) => {
                renewing.abort();
                let give_back = RenewLeasesRequest {
                    give_back: true,
                    ..renewal
                };
                let given = self.client.renew_leases(&self.space.graph, &give_back);
                // Without an answer, the lease expires.
                let _ = timeout(MAX_STOP, given).await;
                return Err(error);
            }
        };
        let reported = self.keep(given, lease, outcome).await;
        renewing.abort();
        reported?;
        self.count(&given.json, outcome);
        Ok(())
    }

    /// Renews a lease in the background.
    fn renew(&self, renewal: RenewLeasesRequest) -> JoinHandle<()> {
        let client = self.client.clone();
        let space = Arc::clone(&self.space);
        let pause = (self.worker.ttl / RENEWALS).min(MAX_RENEWAL);
        tokio::spawn(async move {
            loop {
                sleep(pause).await;
                // If the server is away, the next renewal may succeed. Whatever became of the lease, the measurement counts.
                let _ = client.renew_leases(&space.graph, &renewal).await;
            }
        })
    }

    /// Reports a measurement, once the server answers.
    async fn keep(
        &mut self,
        given: &GivenConfiguration,
        lease: Lease,
        outcome: MeasuredOutcome,
    ) -> Result<(), CommandError> {
        let adapt = Adapt::new(&self.worker.target).measured(&given.batch, &[outcome]);
        let details = ReportDetails {
            machine: self.machine.clone(),
            leases: vec![lease.id],
            search: self.worker.search.clone(),
            ..ReportDetails::default()
        };
        let report = || {
            until_answered(&self.progress, async || {
                let graph = &self.space.graph;
                let kept = self
                    .client
                    .report_measurements_with(&details, graph, &adapt);
                kept.await?;
                Ok(())
            })
        };
        if let Some(reported) = self.stop.unless_stopped(report()).await {
            return reported;
        }
        // What was measured is not lost if the server answers soon. A report that was taken twice counts once.
        match timeout(MAX_STOP, report()).await {
            Ok(Err(error)) => Err(error),
            _ => Err(CommandError::Stopped),
        }
    }

    fn count(&mut self, configuration: &str, outcome: MeasuredOutcome) {
        self.progress.advance();
        self.since_improvement += 1;
        let report = &mut self.report;
        let line = match outcome {
            MeasuredOutcome::Time { seconds, .. } => {
                report.measured += 1;
                if report.best_seconds.is_none_or(|best| seconds < best) {
                    report.best_seconds = Some(seconds);
                    report.best = serde_json::from_str(configuration).ok();
                    self.since_improvement = 0;
                }
                format!("{seconds} s {configuration}")
            }
            MeasuredOutcome::Failed(failure) => {
                report.failed += 1;
                format!("failed ({}) {configuration}", name_of(failure))
            }
        };
        self.progress.say(&line);
    }
}

/// The name of a failure as commands print it.
fn name_of(failure: MeasurementFailure) -> String {
    let words = words(failure.as_str_name(), "MEASUREMENT_FAILURE_");
    // A newer program may have failures that this one does not know.
    words.map_or_else(|| "crash".to_owned(), |words| words.replace(' ', "-"))
}

impl Display for WorkerReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let measured = counted(self.measured, "configuration");
        let Self { failed, ended, .. } = self;
        writeln!(formatter, "{measured} measured, {failed} failed; {ended}.")?;
        if let (Some(seconds), Some(best)) = (self.best_seconds, &self.best) {
            writeln!(formatter, "Fastest of this worker: {seconds} s {best}")?;
        }
        Ok(())
    }
}
