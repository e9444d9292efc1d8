//! Settings of the server, by flag or environment variable.

use std::{
    collections::BTreeMap, env, fmt, io, net::SocketAddr, num::NonZeroUsize, path::PathBuf, str::FromStr,
    time::Duration,
};

use clap::{
    Args, Command, CommandFactory as _, FromArgMatches as _, Parser,
    builder::{PathBufValueParser, TypedValueParser as _},
};
use hlorank_graph::{Limits, Task};

use crate::{
    manual::{run_if_asked, with_manual},
    registry::Defaults,
    security::SecuritySettings,
    service::DeliverySettings,
    store::StoreLocation,
    telemetry::{LogFormat, TraceSettings, ratio},
};

/// Ranks compiler configurations by predicted run time, over gRPC.
///
/// Each option is also an environment variable. `-h` has one line per option, `--help` has all details.
#[derive(Clone, Debug, Parser)]
#[command(name = "hlorank-server", version)]
pub struct Settings {
    /// Address and port of the gRPC listener
    ///
    /// On loopback by default, because calls require no token by default.
    #[arg(long, env = "HLORANK_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    #[arg(help_heading = LISTENING)]
    pub listen: SocketAddr,

    /// HTTP listener for /metrics, /healthz and /readyz
    ///
    /// Its address and port; `off` disables it. `/` is a page that shows the state of the server.
    #[arg(long, env = "HLORANK_METRICS_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7071")]
    #[arg(help_heading = LISTENING)]
    pub metrics_listen: AddressOrOff,

    /// Folder of model artifacts
    ///
    /// It is laid out as NAME/VERSION/manifest.json.
    #[arg(long, env = "HLORANK_MODELS", value_name = "FOLDER", default_value = "models/registry")]
    #[arg(help_heading = MODELS, value_parser = PathBufValueParser::new().try_map(std::path::absolute))]
    pub models: PathBuf,

    /// ONNX Runtime library, version 1.24 or newer
    ///
    /// `make setup` installs it in a checkout. A name without a folder is looked for as `dlopen` does.
    #[arg(
        long,
        env = "HLORANK_ONNXRUNTIME",
        value_name = "FILE",
        default_value = "target/onnxruntime/libonnxruntime.so"
    )]
    #[arg(help_heading = MODELS, value_parser = PathBufValueParser::new().try_map(absolute_or_name))]
    pub onnxruntime: PathBuf,

    /// Admin listener, whose calls change which models serve
    ///
    /// Its address and port; `off` disables it. Without --tokens or --tls-client-ca every client that reaches it may
    /// call it: keep it on loopback or on a separate network.
    #[arg(long, env = "HLORANK_ADMIN_LISTEN", value_name = "ADDRESS", default_value = "off")]
    #[arg(help_heading = LISTENING)]
    pub admin_listen: AddressOrOff,

    /// Interval at which files are polled, in seconds
    ///
    /// Polled are the model folder and the files of certificates and tokens. The model folder is also watched, so that
    /// most changes to it are seen immediately.
    #[arg(long, env = "HLORANK_POLL_SECONDS", value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    #[arg(help_heading = MODELS)]
    pub poll_seconds: Duration,

    /// Versions per model that stay loaded for a rollback
    ///
    /// They are loaded besides those that serve, so that a rollback is immediate.
    #[arg(long, env = "HLORANK_RETAIN_VERSIONS", value_name = "VERSIONS", default_value_t = 1)]
    #[arg(help_heading = MODELS)]
    pub retain_versions: usize,

    /// Maximum slowdown of a new version, as a factor
    ///
    /// It is the time of the new version for its golden cases, as a multiple of the time of the serving version; a slower
    /// version is rejected.
    #[arg(long, env = "HLORANK_MAX_SLOWDOWN", value_name = "FACTOR", default_value_t = 3.0, value_parser = factor)]
    #[arg(help_heading = MODELS)]
    pub max_slowdown: f64,

    /// Maximum time to load a model version, in seconds
    ///
    /// It includes the checks; a version that takes longer is rejected.
    #[arg(long, env = "HLORANK_MAX_LOAD_SECONDS", value_name = "SECONDS", default_value = "300", value_parser = positive_seconds)]
    #[arg(help_heading = MODELS)]
    pub max_load_seconds: Duration,

    /// Maximum time of one run of a model, in seconds
    ///
    /// A longer run is stopped and its calls fail. A version whose run does not end after that is taken out of service.
    #[arg(long, env = "HLORANK_MAX_RUN_SECONDS", value_name = "SECONDS", default_value = "30", value_parser = positive_seconds)]
    #[arg(help_heading = MODELS)]
    pub max_run_seconds: Duration,

    /// Graphs that a new version computes before it serves
    ///
    /// A number of recently used graphs, for whose last batch it computes the embeddings; this delays the new version.
    #[arg(long, env = "HLORANK_RECOMPUTE_GRAPHS", value_name = "GRAPHS", default_value_t = 0)]
    #[arg(help_heading = MODELS)]
    pub recompute_graphs: usize,

    /// Model of layouts if a request names none
    ///
    /// A name other than the default must be that of a model in the folder, for this option and those of the other tasks.
    #[arg(long, env = "HLORANK_DEFAULT_LAYOUT_MODEL", value_name = "NAME", default_value = LAYOUT_MODEL)]
    #[arg(help_heading = MODELS)]
    pub default_layout_model: String,

    /// Model of tiles if a request names none
    #[arg(long, env = "HLORANK_DEFAULT_TILE_MODEL", value_name = "NAME", default_value = TILE_MODEL)]
    #[arg(help_heading = MODELS)]
    pub default_tile_model: String,

    /// Model of fusions if a request names none
    #[arg(long, env = "HLORANK_DEFAULT_FUSION_MODEL", value_name = "NAME", default_value = FUSION_MODEL)]
    #[arg(help_heading = MODELS)]
    pub default_fusion_model: String,

    /// Models of feature sets that several models take
    ///
    /// A comma-separated list of SET=MODEL, or `none`. A set that only one model takes needs no entry.
    #[arg(long, env = "HLORANK_DEFAULT_FEATURE_SET_MODELS", value_name = "LIST", default_value = "none")]
    #[arg(help_heading = MODELS)]
    pub default_feature_set_models: FeatureSetModels,

    /// File or database that keeps reported measurements
    ///
    /// A file is created if it is missing, and each server needs one of its own. Several servers may share a PostgreSQL
    /// database, `postgres://USER:PASSWORD@HOST/DATABASE`. `off` keeps none.
    #[arg(long, env = "HLORANK_MEASUREMENTS", value_name = "PLACE", default_value = "off")]
    #[arg(help_heading = MEASUREMENTS, hide_env_values = true)]
    pub measurements: StoreLocation,

    /// Maximum size of the kept measurements in bytes
    ///
    /// Each takes about 200. The file takes up to three times as much as all.
    #[arg(long, env = "HLORANK_MAX_MEASUREMENTS_BYTES", value_name = "BYTES", default_value_t = 1 << 30)]
    #[arg(help_heading = MEASUREMENTS)]
    pub max_measurements_bytes: u64,

    /// Share of the compute threads' time for replays
    ///
    /// Kept measurements are replayed through the versions in use, to see how well each ranks. Shadows score calls for at
    /// most the same share. 0 disables both.
    #[arg(long, env = "HLORANK_REPLAY_SHARE", value_name = "RATIO", default_value_t = 0.05, value_parser = ratio)]
    #[arg(help_heading = MEASUREMENTS)]
    pub replay_share: f64,

    /// Number of compute threads
    ///
    /// Each holds one session of every model. The default is the number of cores.
    #[arg(long, env = "HLORANK_WORKERS", value_name = "THREADS", default_value_t = cores())]
    #[arg(help_heading = RESOURCES)]
    pub workers: NonZeroUsize,

    /// Size of the graph cache in bytes
    ///
    /// What models compute of the segments of graphs takes at most an eighth of it more.
    #[arg(long, env = "HLORANK_GRAPH_CACHE_BYTES", value_name = "BYTES", default_value_t = 1 << 30)]
    #[arg(help_heading = RESOURCES)]
    pub graph_cache_bytes: u64,

    /// Size of the embedding cache in bytes; 0 disables it
    ///
    /// A pair of segment and local configuration takes about 400.
    #[arg(long, env = "HLORANK_EMBEDDING_CACHE_BYTES", value_name = "BYTES", default_value_t = 1 << 29)]
    #[arg(help_heading = RESOURCES)]
    pub embedding_cache_bytes: u64,

    /// Maximum number of requests in flight
    ///
    /// It includes queued ones, and a stream counts until it ends. Further requests are rejected immediately.
    #[arg(long, env = "HLORANK_MAX_REQUESTS", value_name = "REQUESTS", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = LIMITS)]
    pub max_requests: u32,

    /// Maximum number of requests in flight per client
    ///
    /// A client is a token if calls require one, otherwise an address.
    #[arg(long, env = "HLORANK_MAX_CLIENT_REQUESTS", value_name = "REQUESTS", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = LIMITS)]
    pub max_client_requests: u32,

    /// Maximum amount of queued work, in padded nodes
    ///
    /// Rows times the nodes of each, including padding. The default is about 100 seconds of work for one thread. A call
    /// that exceeds it is rejected, unless the queue is empty.
    #[arg(long, env = "HLORANK_MAX_QUEUED_NODES", value_name = "NODES", default_value_t = 1 << 25)]
    #[arg(help_heading = LIMITS)]
    pub max_queued_nodes: usize,

    /// Maximum memory of all calls in flight, in bytes
    ///
    /// It is used in addition to the caches: messages while they arrive and after they are decoded, embeddings, and
    /// answers until they are sent. A call that exceeds it is rejected.
    #[arg(long, env = "HLORANK_MAX_CALL_BYTES", value_name = "BYTES", default_value_t = 2 << 30)]
    #[arg(help_heading = LIMITS)]
    pub max_call_bytes: usize,

    /// Settings of the messages that clients send
    #[command(flatten, next_help_heading = LIMITS)]
    pub delivery: DeliverySettings,

    /// Maximum number of configurations per stream
    ///
    /// Each takes 4 bytes until the stream ends, and then briefly about 20. The full ranking of the default number fits a
    /// message of 64 MiB.
    #[arg(long, env = "HLORANK_MAX_STREAM_CONFIGS", value_name = "CONFIGS", default_value_t = 8 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = LIMITS)]
    pub max_stream_configs: u32,

    /// Maximum size of a serialized HLO module in bytes
    #[arg(long, env = "HLORANK_MAX_GRAPH_BYTES", value_name = "BYTES", default_value_t = 32 << 20)]
    #[arg(help_heading = LIMITS)]
    pub max_graph_bytes: usize,

    /// Settings of TLS, tokens and connections
    #[command(flatten, next_help_heading = "Security")]
    pub security: SecuritySettings,

    /// Limits of one graph and one batch
    #[command(flatten, next_help_heading = LIMITS)]
    pub limits: LimitSettings,

    /// Time to finish calls after SIGTERM or SIGINT, in seconds
    #[arg(long, env = "HLORANK_DRAIN_SECONDS", value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    #[arg(help_heading = LISTENING)]
    pub drain_seconds: Duration,

    /// Log lines to print
    ///
    /// `error`, `warn`, `info`, `debug`, `trace`, or tracing directives per module.
    #[arg(long, env = "HLORANK_LOG", value_name = "FILTER", default_value = "info,notify=warn")]
    #[arg(help_heading = LOGS)]
    pub log: String,

    /// Format of log lines
    #[arg(long, env = "HLORANK_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    #[arg(help_heading = LOGS)]
    pub log_format: LogFormat,

    /// Fraction of successful calls that are logged, 0 to 1
    ///
    /// They are logged when they end; failed calls are always logged.
    #[arg(long, env = "HLORANK_ACCESS_LOG_SAMPLE", value_name = "RATIO", default_value_t = 1.0, value_parser = ratio)]
    #[arg(help_heading = LOGS)]
    pub access_log_sample: f64,

    /// Settings of traces
    #[command(flatten, next_help_heading = LOGS)]
    pub traces: TraceSettings,
}

/// Headings of `--help`.
/// The models of tasks that hlorank brings.
const LAYOUT_MODEL: &str = "layout-xla-cpu";
const TILE_MODEL: &str = "tile-iree-cpu";
const FUSION_MODEL: &str = "fusion-xla-cpu";

const LISTENING: &str = "Listening";
const MODELS: &str = "Models";
const RESOURCES: &str = "Threads and caches";
const MEASUREMENTS: &str = "Measurements";
const LIMITS: &str = "Limits";
const LOGS: &str = "Logs and traces";

/// Models by feature set: `SET=MODEL,SET=MODEL`, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureSetModels(pub Vec<(String, String)>);

/// The text is no list of feature sets and models.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected SET=MODEL, separated by commas and each set once, or `none`")]
pub struct NoFeatureSetModels;

/// Address and port of a listener, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOrOff(pub Option<SocketAddr>);

/// The text is neither an address with a port nor `off`.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected an address with a port, such as 127.0.0.1:7071, or `off`")]
pub struct NoAddress;

/// Limits that are checked before memory is allocated.
#[derive(Clone, Debug, Args)]
pub struct LimitSettings {
    /// Maximum number of nodes of a graph
    ///
    /// A node is an instruction.
    #[arg(long, env = "HLORANK_MAX_NODES", value_name = "NODES", default_value_t = Limits::default().nodes)]
    pub max_nodes: usize,

    /// Maximum number of edges of a graph
    ///
    /// An edge is a reference to an operand or a callee.
    #[arg(long, env = "HLORANK_MAX_EDGES", value_name = "EDGES", default_value_t = Limits::default().edges)]
    pub max_edges: usize,

    /// Maximum number of configurations of a batch
    #[arg(long, env = "HLORANK_MAX_CONFIGS", value_name = "CONFIGS", default_value_t = Limits::default().configs)]
    pub max_configs: usize,

    /// Maximum number of entries of a batch
    ///
    /// Configurations times configurable nodes; each entry takes 2 bytes.
    #[arg(long, env = "HLORANK_MAX_CONFIG_ENTRIES", value_name = "ENTRIES", default_value_t = Limits::default().config_entries)]
    pub max_config_entries: usize,
}

impl FromStr for AddressOrOff {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        match text {
            "off" => Ok(Self(None)),
            address => address.parse().map(|address| Self(Some(address))).map_err(|_| NoAddress),
        }
    }
}

impl FromStr for FeatureSetModels {
    type Err = NoFeatureSetModels;

    fn from_str(text: &str) -> Result<Self, NoFeatureSetModels> {
        if text == "none" {
            return Ok(Self::default());
        }
        let mut models = BTreeMap::new();
        for pair in text.split(',') {
            // A set may have `=` in its name, a folder of models has not.
            let (set, model) = pair.rsplit_once('=').ok_or(NoFeatureSetModels)?;
            let is_new = models.insert(set.trim().to_owned(), model.trim().to_owned()).is_none();
            if set.trim().is_empty() || model.trim().is_empty() || !is_new {
                return Err(NoFeatureSetModels);
            }
        }
        Ok(Self(models.into_iter().collect()))
    }
}

impl fmt::Display for AddressOrOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(formatter),
            None => formatter.write_str("off"),
        }
    }
}

impl LimitSettings {
    /// Returns the limits in the form of the graph crate.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            nodes: self.max_nodes,
            edges: self.max_edges,
            configs: self.max_configs,
            config_entries: self.max_config_entries,
        }
    }
}

fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Returns the absolute path of a file in a folder. The loader of libraries looks for a name without a folder.
fn absolute_or_name(path: PathBuf) -> io::Result<PathBuf> {
    if path.components().count() > 1 { std::path::absolute(path) } else { Ok(path) }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, such as 30 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("expected more than 0 seconds".to_owned()),
        seconds => Ok(seconds),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0);
    factor.ok_or_else(|| "expected a factor above 0, such as 3 or 1.5".to_owned())
}

impl Settings {
    /// Reads the settings of this process. Ends it if they are wrong, or if they ask for help, a manual page or completions.
    #[must_use]
    pub fn of_process() -> Self {
        let is_summary = env::args_os().any(|argument| argument == "-h");
        let command = with_manual(Self::command_with_help(is_summary));
        let mut matches = command.clone().get_matches();
        run_if_asked(command, &matches);
        Self::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the command of these settings. In a summary, every option has one line, without its environment variable and
    /// its default.
    fn command_with_help(is_summary: bool) -> Command {
        Self::command().mut_args(|option| option.hide_env(is_summary).hide_default_value(is_summary))
    }

    /// Returns the models that answer requests which name none. The models of tasks are required if they are not the ones
    /// that hlorank brings.
    #[must_use]
    pub fn default_models(&self) -> Defaults {
        let tasks = [
            (Task::Layout, &self.default_layout_model, LAYOUT_MODEL),
            (Task::Tile, &self.default_tile_model, TILE_MODEL),
            (Task::Fusion, &self.default_fusion_model, FUSION_MODEL),
        ];
        let named = tasks.iter().filter(|(_, name, default)| name != default);
        Defaults {
            required: named.map(|(task, ..)| *task).collect(),
            tasks: tasks.iter().map(|(task, name, _)| (*task, (*name).clone())).collect(),
            feature_sets: self.default_feature_set_models.0.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_flag_a_variable_and_a_default() {
        for setting in Settings::command().get_arguments().filter(|setting| setting.get_id() != "version") {
            let name = setting.get_id().as_str();
            let variable = format!("HLORANK_{}", name.to_uppercase());
            assert!(setting.get_long().is_some(), "{name} has no flag");
            assert_eq!(setting.get_env().and_then(|variable| variable.to_str()), Some(variable.as_str()));
            assert!(!setting.get_default_values().is_empty(), "{name} has no default");
        }
    }

    #[test]
    fn the_summary_has_one_line_per_option_below_headings() {
        let summary = Settings::command_with_help(true).render_help().to_string();
        let (_, options) = summary.split_once("Options:\n").unwrap();
        for line in options.lines().filter(|line| !line.is_empty() && !line.ends_with(':')) {
            let option = line.trim_start();
            assert!(option.starts_with('-') && option.contains("  "), "no line of one option: {line}");
        }
        let without_heading = options.split("\n\n").next().unwrap();
        assert_eq!(without_heading.lines().count(), 2, "only help and version: {without_heading}");
        for heading in [LISTENING, MODELS, RESOURCES, LIMITS, "Security", LOGS] {
            assert_eq!(summary.matches(&format!("\n{heading}:\n")).count(), 1, "{heading} in {summary}");
        }
    }

    #[test]
    fn the_long_help_has_the_variable_and_the_default_of_every_option() {
        let help = Settings::command_with_help(false).render_long_help().to_string();
        for setting in Settings::command().get_arguments().filter(|setting| setting.get_id() != "version") {
            let variable = setting.get_env().unwrap().to_str().unwrap();
            let default = setting.get_default_values()[0].to_str().unwrap();
            let entry = help.split(&format!("\n      --{} <", setting.get_long().unwrap())).nth(1).unwrap();
            let entry = entry.split("\n      --").next().unwrap();
            // A value that may hold a password is not printed.
            let is_named = ["=", "]"].iter().any(|end| entry.contains(&format!("[env: {variable}{end}")));
            assert!(is_named, "{entry}");
            assert!(entry.contains(&format!("[default: {default}]")), "{entry}");
        }
    }

    #[test]
    fn admin_calls_are_off_unless_enabled() {
        let settings =
            |arguments: &[&str]| Settings::try_parse_from([&["hlorank-server"], arguments].concat());
        assert_eq!(settings(&[]).unwrap().admin_listen, AddressOrOff(None));
        let enabled = settings(&["--admin-listen", "127.0.0.1:7072"]).unwrap().admin_listen;
        assert_eq!(enabled, AddressOrOff(Some(SocketAddr::from(([127, 0, 0, 1], 7072)))));
        assert!(settings(&["--admin-listen", "7072"]).unwrap_err().to_string().contains("`off`"));
    }

    #[test]
    fn the_default_models_rank_what_compilers_take() {
        let settings = Settings::try_parse_from(["hlorank-server"]).unwrap();
        let expected = [
            (Task::Layout, "layout-xla-cpu"),
            (Task::Tile, "tile-iree-cpu"),
            (Task::Fusion, "fusion-xla-cpu"),
        ];
        assert_eq!(settings.default_models().tasks, expected.map(|(task, name)| (task, name.to_owned())));
        assert!(settings.default_models().feature_sets.is_empty());
        assert!(settings.default_models().required.is_empty());
    }

    #[test]
    fn a_model_that_the_settings_name_is_required() {
        let settings =
            Settings::try_parse_from(["hlorank-server", "--default-tile-model", "tile-xla-cpu"]).unwrap();
        assert_eq!(settings.default_models().required, [Task::Tile]);
    }

    #[test]
    fn models_of_feature_sets_are_a_list() {
        let read = |text: &str| text.parse().map(|FeatureSetModels(models)| models);
        let pair = |set: &str, model: &str| (set.to_owned(), model.to_owned());
        assert_eq!(read("b=2,a=b=1").unwrap(), [pair("a=b", "1"), pair("b", "2")]);
        assert!(read("none").unwrap().is_empty());
        for wrong in ["", "a", "a=", "=m", "a=1,a=2", "a=1,"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_server_listens_on_loopback_by_default() {
        let settings = Settings::try_parse_from(["hlorank-server"]).unwrap();
        assert!(settings.listen.ip().is_loopback());
        assert!(settings.metrics_listen.0.unwrap().ip().is_loopback());
        assert_eq!(settings.limits.limits(), Limits::default());
    }
    #[test]
    fn a_listener_has_an_address_or_is_off() {
        let listen = |text| Settings::try_parse_from(["hlorank-server", "--metrics-listen", text]);
        for text in ["off", "127.0.0.1:0", "[::1]:9000"] {
            assert_eq!(listen(text).unwrap().metrics_listen.to_string(), text);
        }
        assert!(listen("7071").unwrap_err().to_string().contains("or `off`"));
    }

    #[test]
    fn the_page_of_logs_and_traces_lists_their_settings() {
        let page = include_str!("../../docs/logs-and-traces.md");
        for name in
            ["log", "log_format", "access_log_sample", "otlp_endpoint", "otlp_ca", "trace_sample_ratio"]
        {
            let (settings, flag) = (Settings::command(), name.replace('_', "-"));
            let setting = settings.get_arguments().find(|setting| setting.get_id() == name).unwrap();
            let default = setting.get_default_values()[0].display();
            let row = format!("| `--{flag}`, `HLORANK_{}` | `{default}` |", name.to_uppercase());
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn the_page_of_limits_lists_every_limit() {
        let page = include_str!("../../docs/limits.md");
        let limits = page.split("## Limits").nth(1).and_then(|rest| rest.split("## ").next()).unwrap();
        let settings = Settings::command();
        let is_limit = |name: &str| name.starts_with("max_") && name != "max_slowdown";
        for setting in settings.get_arguments().filter(|setting| is_limit(setting.get_id().as_str())) {
            let (name, default) = (setting.get_long().unwrap(), setting.get_default_values()[0].display());
            let row = format!("| `--{name}` | {default} |");
            assert!(limits.replace(',', "").contains(&row), "{row}");
        }
    }

    #[test]
    fn a_ratio_lies_between_0_and_1() {
        let sample = |ratio| Settings::try_parse_from(["hlorank-server", "--access-log-sample", ratio]);
        for good in ["0", "1", "0.25"] {
            assert_eq!(sample(good).unwrap().access_log_sample.to_string(), good);
        }
        for wrong in ["-0.1", "1.1", "NaN", "half"] {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
    }
}
