use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::Args;

use super::options::{Share, duration, part, positive};
use crate::cli::{
    input::{GRAPH_FILE, Selection},
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
    pub(super) files: Vec<PathBuf>,
    /// Relative frequency of the calls about each FILE, one number per FILE [default: all equal]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = positive)]
    pub(super) weights: Vec<f64>,
    /// Numbers of configurations per call, drawn from those of the file, and their relative frequencies [default: all
    /// configurations of the file]
    #[arg(long, value_name = "N[:WEIGHT],...", value_delimiter = ',', conflicts_with = "trace")]
    pub(super) configs: Vec<Share>,
    /// Number of different calls per graph and number of configurations; they are drawn once and sent repeatedly
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) distinct: u32,
    /// Share of the calls that are streams, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = part, conflicts_with = "trace")]
    pub(super) streams: f64,
    /// Number of configurations per batch of a stream
    #[arg(long, value_name = "N", default_value = "100")]
    pub(super) batch: NonZeroU32,
    /// Record the calls in a trace, which `hlorank bench --trace` replays
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Replay a recorded trace: once at its recorded times, or repeatedly in its order with --rate
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Speed of the replay, relative to the recorded times
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive, requires = "trace")]
    #[arg(conflicts_with = "rate")]
    pub(super) speed: f64,
    /// Mean number of calls per second, at random times (Poisson arrivals) [default: 100 without a trace]
    #[arg(long, value_name = "CALLS", value_parser = positive)]
    pub(super) rate: Option<f64>,
    /// Duration of the load, such as 500ms, 30s, 5m or 1h [default: 30s, or the duration of the trace]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) duration: Option<Duration>,
    /// Number of connections, which the calls use in turn
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) connections: u16,
    /// Maximum number of calls in flight; calls that are due beyond it are counted but not sent
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_in_flight: u32,
    /// Number of best configurations that a call requests; 0 requests all
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub(super) top: u32,
    /// Seed of the random times, calls and configurations
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Plot latency by percentile and over time as SVG
    #[arg(long, value_name = "FILE.svg")]
    pub(super) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(super) model: ModelChoice,
    #[command(flatten)]
    pub(super) selection: Selection,
    #[command(flatten)]
    pub(super) server: Server,
}
