//! `hlorank bench`: how a server holds a load.
//!
//! The load is open: calls begin when they are due, whatever the answers to those before them take, and the latency of
//! a call counts from when it was due. So a server that stalls has stalled for everything that was due meanwhile, which
//! a load that waits for answers would not have sent (coordinated omission).

mod arrivals;
mod draw;
mod load;
mod options;
mod plot;
mod report;
mod run;
mod tally;
mod text;

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::Args;

use self::{
    load::Load,
    options::{Share, duration, part, positive},
    run::Run,
};
use super::{
    error::CommandError,
    input::{GRAPH_FILE, Selection},
    output::Format,
    server::{ModelChoice, Server},
};

const EXAMPLES: &str = "\
Examples:
  hlorank bench kernels.pb --rate 200 --duration 30s
  hlorank bench kernels.pb module.hlo.txt --weights 9,1 --configs 10:8,1000:1 --rate 500 --plot bench.svg
  hlorank bench kernels.pb --configs 100:9,5000:1 --streams 0.2 --record mixed.trace
  hlorank bench --trace search.trace --speed 2 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    #[arg(value_name = "FILE", required_unless_present = "trace", conflicts_with = "trace", help = GRAPH_FILE)]
    files: Vec<PathBuf>,
    /// How often each file is asked about, beside the others: one number a FILE; left out, all alike
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = positive)]
    weights: Vec<f64>,
    /// How many configurations a call has, drawn from those of the file, and how often beside the other numbers; left out, all of the file
    #[arg(long, value_name = "N[:WEIGHT],...", value_delimiter = ',', conflicts_with = "trace")]
    configs: Vec<Share>,
    /// How many different calls are drawn of each graph and number of configurations, to be sent again and again
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    distinct: u32,
    /// Which part of the calls is sent as streams, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = part, conflicts_with = "trace")]
    streams: f64,
    /// How many configurations a batch of a stream has
    #[arg(long, value_name = "N", default_value = "100")]
    batch: NonZeroU32,
    /// Write what is sent as a trace, which `hlorank bench --trace` sends again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Send the calls of this recorded trace, in their order: once, when they were recorded; or with --rate, again and again
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// How many times as fast as it was recorded a trace goes
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive, requires = "trace")]
    #[arg(conflicts_with = "rate")]
    speed: f64,
    /// Calls a second, at random times (Poisson arrivals); 100 where there is no trace
    #[arg(long, value_name = "CALLS", value_parser = positive)]
    rate: Option<f64>,
    /// How long calls are sent, such as 500ms, 30s, 5m or 1h; 30s, or the whole trace once
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// How many connections the calls take turns on
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// How many calls may wait for their answers; what is due beyond that is not sent, and counted
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_in_flight: u32,
    /// How many of the best a call asks for; 0 for all
    #[arg(long, value_name = "K", default_value_t = 10)]
    top: u32,
    /// Which random times, calls and configurations
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Draw latency by percentile and over time, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    model: ModelChoice,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    server: Server,
}

impl Bench {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let load = Load::of(&self)?;
        let report = Run::connect(&self, &load).await?.report(load).await?;
        if let Some(path) = &self.plot {
            plot::write(path, &report)?;
        }
        Ok(format.print(&report)?)
    }
}
