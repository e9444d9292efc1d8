//! Settings of the server, by flag or environment variable.

use std::{env, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{
    Arg, Args, Command, CommandFactory as _, FromArgMatches as _, Parser,
    builder::{PathBufValueParser, TypedValueParser as _},
};
use hlorank_arguments::{VARIABLES, bytes, duration, matches_of_process, positive_duration};
use hlorank_graph::{Limits, Task};

use crate::{
    manual::{run_if_asked, with_manual},
    or_off::OrOff,
    registry::Defaults,
    security::SecuritySettings,
    store::{ReaderDecisions, StoreLocation},
    telemetry::{LogFilter, LogFormat},
    translations::DeliverySettings,
};

mod values;

pub use values::{Address, DefaultModels, Period};
use values::{absolute_or_name, factor, ratio};

/// Ranks compiler configurations by predicted run time, over gRPC.
///
/// Each option is also an environment variable. `-h` has one line per option, `--help` has all details. Sizes are numbers of
/// bytes or have a unit, such as 64MiB; times are numbers of seconds or have a unit, such as 500ms, 5s, 2m, 1h or 30d.
#[derive(Clone, Debug, Parser)]
#[command(name = "hlorank-server", version, mut_args = with_variable)]
pub struct Settings {
    /// Address and port of the gRPC listener
    ///
    /// On loopback by default, because calls require no token by default. A host name such as localhost is looked up when the
    /// server starts; the first IPv4 address is taken, or else the first. 0.0.0.0 listens on every IPv4 address.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070", help_heading = LISTENING)]
    pub listen: Address,

    /// HTTP listener for /metrics, /healthz and /readyz
    ///
    /// Its address and port; `off` disables it. `/` is a page that shows the state of the server.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7071", help_heading = LISTENING)]
    pub metrics_listen: OrOff<Address>,

    /// Folder of model artifacts
    ///
    /// It is laid out as NAME/VERSION/manifest.json.
    #[arg(long, value_name = "FOLDER", default_value = "models/registry", help_heading = MODELS, value_parser = PathBufValueParser::new().try_map(std::path::absolute))]
    pub models: PathBuf,

    /// PEM file of public keys that sign versions
    ///
    /// One of them must have signed each version. `model_signing sign key` makes the signature `model.sig` of a version. The keys are of ECDSA on P-256 or P-384. `off`
    /// serves versions without signatures.
    #[arg(long, value_name = "FILE", default_value = "off", help_heading = MODELS)]
    pub models_key: OrOff<PathBuf>,

    /// ONNX Runtime library, version 1.24 or newer
    ///
    /// `make setup` installs it in a checkout. A name without a folder is looked for as `dlopen` does.
    #[arg(long, value_name = "FILE", default_value = "target/onnxruntime/libonnxruntime.so", help_heading = MODELS, value_parser = PathBufValueParser::new().try_map(absolute_or_name))]
    pub onnxruntime: PathBuf,

    /// Admin listener, whose calls change which models serve
    ///
    /// Its address and port; `off` disables it. Without --tokens or --tls-client-ca every client that reaches it may
    /// call it: keep it on loopback or on a separate network.
    #[arg(long, value_name = "ADDRESS", default_value = "off", help_heading = LISTENING)]
    pub admin_listen: OrOff<Address>,

    /// Interval at which files are polled, in seconds
    ///
    /// Polled are the model folder and the files of certificates and tokens. The model folder is also watched, so that
    /// most changes to it are seen immediately.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_duration, help_heading = MODELS)]
    pub poll_seconds: Duration,

    /// Versions per model that stay loaded for a rollback
    ///
    /// They are loaded besides those that serve, so that a rollback is immediate.
    #[arg(long, value_name = "VERSIONS", default_value_t = 1, help_heading = MODELS)]
    pub retain_versions: usize,

    /// Maximum slowdown of a new version, as a factor
    ///
    /// It is the time of the new version for its golden cases, as a multiple of the time of the serving version; a slower
    /// version is rejected.
    #[arg(long, value_name = "FACTOR", default_value_t = 3.0, value_parser = factor, help_heading = MODELS)]
    pub max_slowdown: f64,

    /// Maximum time to load a model version, in seconds
    ///
    /// It includes the checks; a version that takes longer is rejected.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = positive_duration, help_heading = MODELS)]
    pub max_load_seconds: Duration,

    /// Maximum time of one run of a model, in seconds
    ///
    /// A longer run is stopped and its calls fail. A version whose run does not end after that is taken out of service.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = positive_duration, help_heading = MODELS)]
    pub max_run_seconds: Duration,

    /// Models of requests that name none
    ///
    /// A comma-separated list of TASK=MODEL, where TASK is layout, tile or fusion, and of SET=MODEL for feature sets that several
    /// models take, or `none`. Every model of the list must be in the folder. A task that is not listed has the model that
    /// hlorank brings.
    #[arg(long, value_name = "LIST", default_value = "none", help_heading = MODELS)]
    pub default_models: DefaultModels,

    /// File or database that keeps measurements and decisions
    ///
    /// A file is created if it is missing, and each server needs one of its own. Several servers may share a PostgreSQL
    /// database, `postgres://USER:PASSWORD@HOST/DATABASE`. `off` keeps none.
    #[arg(long, value_name = "PLACE", default_value = "off", help_heading = MEASUREMENTS, hide_env_values = true)]
    pub measurements: StoreLocation,

    /// Maximum size of the kept measurements and decisions in bytes
    ///
    /// Each takes about 200. The file takes up to three times as much as all.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = bytes::<u64>, help_heading = MEASUREMENTS)]
    pub max_measurements_bytes: u64,

    /// Time after which measurements are deleted
    ///
    /// It counts from the report, such as 365d; `off` keeps them for ever.
    #[arg(long, value_name = "TIME", default_value = "off", help_heading = MEASUREMENTS)]
    pub keep_measurements_for: OrOff<Period>,

    /// What tokens with only the scope read may decide
    ///
    /// `off` lets them look up decisions; claims and proposals need the scope report. `own` lets them claim and propose what answers
    /// the same client alone, `all` what answers all clients.
    #[arg(long, value_name = "WHAT", default_value = "off", help_heading = MEASUREMENTS, hide_possible_values = true)]
    pub decisions: ReaderDecisions,

    /// Share of the compute threads' time for replays
    ///
    /// Kept measurements are replayed through the versions in use, to see how well each ranks. 0 disables replays.
    #[arg(long, value_name = "RATIO", default_value_t = 0.05, value_parser = ratio, help_heading = MEASUREMENTS)]
    pub replay_share: f64,

    /// Number of compute threads
    ///
    /// Each holds one session of every model. The default is the number of cores.
    #[arg(long, value_name = "THREADS", default_value_t = cores(), help_heading = RESOURCES)]
    pub workers: NonZeroUsize,

    /// Size of the graph cache in bytes
    ///
    /// What models compute of the segments of graphs takes at most an eighth of it more.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = bytes::<u64>, help_heading = RESOURCES)]
    pub graph_cache_bytes: u64,

    /// Size of the embedding cache in bytes; 0 disables it
    ///
    /// A pair of segment and local configuration takes about 400.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 29, value_parser = bytes::<u64>, help_heading = RESOURCES)]
    pub embedding_cache_bytes: u64,

    /// Maximum number of requests in flight
    ///
    /// It includes queued ones, and a stream counts until it ends. Further requests are rejected immediately.
    #[arg(long, value_name = "REQUESTS", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..), help_heading = LIMITS)]
    pub max_requests: u32,

    /// Maximum number of requests in flight per client
    ///
    /// A client is a token if calls require one, otherwise an address.
    #[arg(long, value_name = "REQUESTS", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..), help_heading = LIMITS)]
    pub max_client_requests: u32,

    /// Maximum amount of queued work, in padded nodes
    ///
    /// Rows times the nodes of each, including padding. The default is about 100 seconds of work for one thread. A call
    /// that exceeds it is rejected, unless the queue is empty.
    #[arg(long, value_name = "NODES", default_value_t = 1 << 25, help_heading = LIMITS)]
    pub max_queued_nodes: usize,

    /// Maximum memory of all calls in flight, in bytes
    ///
    /// It is used in addition to the caches: messages while they arrive and after they are decoded, embeddings, runs of
    /// whole-graph models, and answers until they are sent. A call that exceeds it is rejected.
    #[arg(long, value_name = "BYTES", default_value_t = 2 << 30, value_parser = bytes::<usize>, help_heading = LIMITS)]
    pub max_call_bytes: usize,

    /// Settings of the messages that clients send
    #[command(flatten, next_help_heading = LIMITS)]
    pub delivery: DeliverySettings,

    /// Settings of TLS, tokens and connections
    #[command(flatten, next_help_heading = "Security")]
    pub security: SecuritySettings,

    /// Limits of one graph and one batch
    #[command(flatten, next_help_heading = LIMITS)]
    pub limits: LimitSettings,

    /// Time to finish calls after SIGTERM or SIGINT, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = duration, help_heading = LISTENING)]
    pub drain_seconds: Duration,

    /// Log lines to print
    ///
    /// `error`, `warn`, `info`, `debug`, `trace`, or levels of modules, such as `info,h2=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info,notify=warn", help_heading = LOGS)]
    pub log: LogFilter,

    /// Format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = LOGS)]
    pub log_format: LogFormat,
}

/// The models of tasks that hlorank brings.
const BUILT_IN_MODELS: [(Task, &str); 3] = [
    (Task::Layout, "layout-xla-cpu"),
    (Task::Tile, "tile-iree-cpu"),
    (Task::Fusion, "fusion-xla-cpu"),
];

/// Headings of `--help`.
const LISTENING: &str = "Listening";
const MODELS: &str = "Models";
const RESOURCES: &str = "Threads and caches";
const MEASUREMENTS: &str = "Measurements";
const LIMITS: &str = "Limits";
const LOGS: &str = "Logs";

/// Edges that a graph may have for each node that it may have.
const EDGES_PER_NODE: usize = 4;

/// Limits that are checked before memory is allocated.
#[derive(Clone, Debug, Args)]
pub struct LimitSettings {
    /// Maximum number of nodes of a graph
    ///
    /// A node is an instruction. A graph may have four times as many edges, which are references to operands and callees.
    #[arg(long, value_name = "NODES", default_value_t = Limits::default().nodes)]
    pub max_nodes: usize,

    /// Maximum number of configurations of a batch
    #[arg(long, value_name = "CONFIGS", default_value_t = Limits::default().configs)]
    pub max_configs: usize,

    /// Maximum number of entries of a batch
    ///
    /// Configurations times configurable nodes; each entry takes 2 bytes.
    #[arg(long, value_name = "ENTRIES", default_value_t = Limits::default().config_entries)]
    pub max_config_entries: usize,
}

impl LimitSettings {
    /// Returns the limits in the form of the graph crate.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            nodes: self.max_nodes,
            edges: self.max_nodes.saturating_mul(EDGES_PER_NODE),
            configs: self.max_configs,
            config_entries: self.max_config_entries,
        }
    }
}

/// Makes an option an environment variable, too: `HLORANK_MAX_NODES` for `--max-nodes`.
fn with_variable(option: Arg) -> Arg {
    let flag = option.get_long().unwrap_or_default();
    let name = format!("HLORANK_{}", flag.to_uppercase().replace('-', "_"));
    let mut known = VARIABLES.into_iter();
    // A test finds an option that the list lacks.
    match known.find(|known| *known == name) {
        Some(known) => option.env(known),
        None => option,
    }
}

fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

impl Settings {
    /// Reads the settings of this process. Ends it if they are wrong, or if they ask for help, a manual page or completions.
    #[must_use]
    pub fn from_process() -> Self {
        // Clap has one text for both forms of help, so which one is asked for is found before it
        // reads the arguments.
        let is_summary = env::args_os().any(|argument| argument == "-h");
        let command = with_manual(Self::command_with_help(is_summary));
        let mut matches = matches_of_process(command.clone());
        run_if_asked(command, &matches);
        Self::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the command of these settings. In a summary, every option has one line, without its environment variable and
    /// its default.
    fn command_with_help(is_summary: bool) -> Command {
        Self::command()
            .mut_args(|option| option.hide_env(is_summary).hide_default_value(is_summary))
    }

    /// Returns the models that answer requests which name none. Those of tasks are required, and answer for every target, if
    /// the operator chose them.
    #[must_use]
    pub fn default_models(&self) -> Defaults {
        let mut defaults = Defaults {
            tasks: BUILT_IN_MODELS
                .map(|(task, name)| (task, name.to_owned()))
                .into(),
            ..Defaults::default()
        };
        for (key, model) in &self.default_models.0 {
            let mut tasks = defaults.tasks.iter_mut();
            match tasks.find(|(task, _)| task.kind().name == key) {
                Some((task, name)) => {
                    name.clone_from(model);
                    defaults.required.push(*task);
                }
                None => defaults.feature_sets.push((key.clone(), model.clone())),
            }
        }
        defaults.chosen.clone_from(&defaults.required);
        defaults
    }
}

#[cfg(test)]
mod tests;
