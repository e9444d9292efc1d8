use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::Args;
use hlorank_arguments::positive_duration;

use super::options::{Share, part, positive};
use crate::cli::{
    input::{GRAPH_FILE, GRAPH_FILE_LONG, Selection},
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
    #[arg(value_name = "FILE", required_unless_present = "trace", conflicts_with = "trace", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    pub(super) files: Vec<PathBuf>,
    /// Relative frequency of the calls about each FILE
    ///
    /// One number per FILE [default: all equal]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = positive)]
    #[arg(help_heading = "Calls")]
    pub(super) weights: Vec<f64>,
    /// Numbers of configurations per call
    ///
    /// They are drawn from those of the file, with these relative frequencies [default: all configurations of the file]
    #[arg(long, value_name = "N[:WEIGHT],...", value_delimiter = ',')]
    #[arg(conflicts_with = "trace", help_heading = "Calls")]
    pub(super) configs: Vec<Share>,
    /// Number of different calls
    ///
    /// It is the number per graph and number of configurations; they are drawn once and sent repeatedly.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = "Calls")]
    pub(super) distinct: u32,
    /// Share of the calls that are streams, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = part, conflicts_with = "trace")]
    #[arg(help_heading = "Calls")]
    pub(super) streams: f64,
    /// Number of configurations per batch of a stream
    #[arg(long, value_name = "N", default_value = "100", help_heading = "Calls")]
    pub(super) batch: NonZeroU32,
    /// Record the calls in a trace
    ///
    /// `hlorank bench --trace` replays it.
    #[arg(long, value_name = "FILE", help_heading = "Traces and plots")]
    pub(super) record: Option<PathBuf>,
    /// Replay a recorded trace
    ///
    /// It is replayed once at its recorded times, or repeatedly in its order with --rate.
    #[arg(long, value_name = "FILE", help_heading = "Traces and plots")]
    pub(super) trace: Option<PathBuf>,
    /// Speed of the replay
    ///
    /// It is relative to the recorded times.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive, requires = "trace")]
    #[arg(conflicts_with = "rate", help_heading = "Traces and plots")]
    pub(super) speed: f64,
    /// Mean number of calls per second
    ///
    /// They are at random times (Poisson arrivals) [default: 100 without a trace]
    #[arg(long, value_name = "CALLS", value_parser = positive, help_heading = "Load")]
    pub(super) rate: Option<f64>,
    /// Duration of the load
    ///
    /// In seconds, or with a unit, such as 500ms or 5m [default: 30s, or the duration of the trace]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = "Load")]
    pub(super) duration: Option<Duration>,
    /// Number of connections
    ///
    /// The calls use them in turn.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    #[arg(help_heading = "Load")]
    pub(super) connections: u16,
    /// Maximum number of calls in flight
    ///
    /// Calls that are due beyond it are counted but not sent.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = "Load")]
    pub(super) max_in_flight: u32,
    /// Number of best configurations to request
    ///
    /// 0 requests all.
    #[arg(long, value_name = "K", default_value_t = 10, help_heading = "Calls")]
    pub(super) top: u32,
    /// Seed of the random times, calls and configurations
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Calls")]
    pub(super) seed: u64,
    /// Plot latency by percentile and over time as SVG
    #[arg(long, value_name = "FILE.svg", help_heading = "Traces and plots")]
    pub(super) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(super) model: ModelChoice,
    #[command(flatten)]
    pub(super) selection: Selection,
    #[command(flatten)]
    pub(super) server: Server,
}
