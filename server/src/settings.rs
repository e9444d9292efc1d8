//! Settings of the server, by flag or environment variable.

use std::{fmt, io, net::SocketAddr, num::NonZeroUsize, path::PathBuf, str::FromStr, time::Duration};

use clap::{
    Args, Parser,
    builder::{PathBufValueParser, TypedValueParser as _},
};
use hlorank_graph::{Limits, Task};

use crate::{
    security::SecuritySettings,
    service::DeliverySettings,
    telemetry::{LogFormat, TraceSettings, ratio},
};

/// Ranks compiler configurations by predicted run time, over gRPC.
#[derive(Clone, Debug, Parser)]
#[command(name = "hlorank-server", version)]
pub struct Settings {
    /// Address and port of the gRPC listener; on loopback by default, because calls require no token by default
    #[arg(long, env = "HLORANK_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub listen: SocketAddr,

    /// Address and port of the HTTP listener for /metrics, /healthz and /readyz; `off` disables it
    #[arg(long, env = "HLORANK_METRICS_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7071")]
    pub metrics_listen: AddressOrOff,

    /// Folder of model artifacts, laid out as NAME/VERSION/manifest.json
    #[arg(long, env = "HLORANK_MODELS", value_name = "FOLDER", default_value = "models/registry")]
    #[arg(value_parser = PathBufValueParser::new().try_map(std::path::absolute))]
    pub models: PathBuf,

    /// ONNX Runtime library, version 1.24 or newer; `make setup` installs it
    #[arg(
        long,
        env = "HLORANK_ONNXRUNTIME",
        value_name = "FILE",
        default_value = "target/onnxruntime/libonnxruntime.so"
    )]
    #[arg(value_parser = PathBufValueParser::new().try_map(absolute_or_name))]
    pub onnxruntime: PathBuf,

    /// Address and port of the admin listener, whose calls change which model versions serve; `off` disables it.
    /// Without --tokens or --tls-client-ca every client that reaches it may call it: keep it on loopback or on a
    /// separate network
    #[arg(long, env = "HLORANK_ADMIN_LISTEN", value_name = "ADDRESS", default_value = "off")]
    pub admin_listen: AddressOrOff,

    /// Interval at which the model folder and the files of certificates and tokens are polled, in seconds; the model
    /// folder is also watched, so that most changes to it are seen immediately
    #[arg(long, env = "HLORANK_POLL_SECONDS", value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    pub poll_seconds: Duration,

    /// Number of versions per model that stay loaded besides those that serve, for an immediate rollback
    #[arg(long, env = "HLORANK_RETAIN_VERSIONS", value_name = "VERSIONS", default_value_t = 1)]
    pub retain_versions: usize,

    /// Maximum time that a new version takes for its golden cases, as a multiple of the time of the serving version; a
    /// slower version is rejected
    #[arg(long, env = "HLORANK_MAX_SLOWDOWN", value_name = "FACTOR", default_value_t = 3.0, value_parser = factor)]
    pub max_slowdown: f64,

    /// Maximum time to load and check a model version, in seconds; a version that takes longer is rejected
    #[arg(long, env = "HLORANK_MAX_LOAD_SECONDS", value_name = "SECONDS", default_value = "300", value_parser = positive_seconds)]
    pub max_load_seconds: Duration,

    /// Maximum duration of one run of a model, in seconds; a longer run is stopped and its calls fail. A version whose
    /// run does not end after that is taken out of service
    #[arg(long, env = "HLORANK_MAX_RUN_SECONDS", value_name = "SECONDS", default_value = "30", value_parser = positive_seconds)]
    pub max_run_seconds: Duration,

    /// Number of recently used graphs for whose last batch a new version computes the embeddings before it serves; this
    /// delays the new version
    #[arg(long, env = "HLORANK_RECOMPUTE_GRAPHS", value_name = "GRAPHS", default_value_t = 0)]
    pub recompute_graphs: usize,

    /// Model that ranks layouts if a request names no model
    #[arg(long, env = "HLORANK_DEFAULT_LAYOUT_MODEL", value_name = "NAME", default_value = "layout-xla-cpu")]
    pub default_layout_model: String,

    /// Model that ranks tiles if a request names no model
    #[arg(long, env = "HLORANK_DEFAULT_TILE_MODEL", value_name = "NAME", default_value = "tile-iree-cpu")]
    pub default_tile_model: String,

    /// Number of compute threads; each holds one session of every model
    #[arg(long, env = "HLORANK_WORKERS", value_name = "THREADS", default_value_t = cores())]
    pub workers: NonZeroUsize,

    /// Size of the graph cache in bytes
    #[arg(long, env = "HLORANK_GRAPH_CACHE_BYTES", value_name = "BYTES", default_value_t = 1 << 30)]
    pub graph_cache_bytes: u64,

    /// Size of the embedding cache in bytes; 0 disables it. A pair of segment and local configuration takes about 400
    #[arg(long, env = "HLORANK_EMBEDDING_CACHE_BYTES", value_name = "BYTES", default_value_t = 1 << 29)]
    pub embedding_cache_bytes: u64,

    /// Maximum number of requests in flight, including queued ones; a stream counts until it ends, and further requests
    /// are rejected immediately
    #[arg(long, env = "HLORANK_MAX_REQUESTS", value_name = "REQUESTS", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_requests: u32,

    /// Maximum number of requests in flight per client: per token if calls require one, otherwise per address
    #[arg(long, env = "HLORANK_MAX_CLIENT_REQUESTS", value_name = "REQUESTS", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_client_requests: u32,

    /// Maximum amount of queued work, in padded nodes: rows times the nodes of each, including padding. The default is
    /// about 100 seconds of work for one thread. A call that exceeds it is rejected, unless the queue is empty
    #[arg(long, env = "HLORANK_MAX_QUEUED_NODES", value_name = "NODES", default_value_t = 1 << 25)]
    pub max_queued_nodes: usize,

    /// Maximum memory of all calls in flight in bytes, in addition to the caches: messages while they arrive and after
    /// they are decoded, embeddings, and answers until they are sent. A call that exceeds it is rejected
    #[arg(long, env = "HLORANK_MAX_CALL_BYTES", value_name = "BYTES", default_value_t = 2 << 30)]
    pub max_call_bytes: usize,

    /// Settings of the messages that clients send
    #[command(flatten)]
    pub delivery: DeliverySettings,

    /// Maximum number of configurations per stream. Each takes 4 bytes until the stream ends, and then briefly about
    /// 20. The full ranking of the default number fits a message of 64 MiB
    #[arg(long, env = "HLORANK_MAX_STREAM_CONFIGS", value_name = "CONFIGS", default_value_t = 8 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_stream_configs: u32,

    /// Maximum size of a serialized HLO module in bytes
    #[arg(long, env = "HLORANK_MAX_GRAPH_BYTES", value_name = "BYTES", default_value_t = 32 << 20)]
    pub max_graph_bytes: usize,

    /// Settings of TLS, tokens and connections
    #[command(flatten)]
    pub security: SecuritySettings,

    /// Limits of one graph and one batch
    #[command(flatten)]
    pub limits: LimitSettings,

    /// Time that calls in flight have to finish after SIGTERM or SIGINT, in seconds
    #[arg(long, env = "HLORANK_DRAIN_SECONDS", value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub drain_seconds: Duration,

    /// Log lines to print: `error`, `warn`, `info`, `debug`, `trace`, or tracing directives per module
    #[arg(long, env = "HLORANK_LOG", value_name = "FILTER", default_value = "info,notify=warn")]
    pub log: String,

    /// Format of log lines
    #[arg(long, env = "HLORANK_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// Fraction of successful calls that are logged when they end, from 0 to 1; failed calls are always logged
    #[arg(long, env = "HLORANK_ACCESS_LOG_SAMPLE", value_name = "RATIO", default_value_t = 1.0, value_parser = ratio)]
    pub access_log_sample: f64,

    /// Settings of traces
    #[command(flatten)]
    pub traces: TraceSettings,
}

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
    /// Maximum number of nodes (instructions) of a graph
    #[arg(long, env = "HLORANK_MAX_NODES", value_name = "NODES", default_value_t = Limits::default().nodes)]
    pub max_nodes: usize,

    /// Maximum number of edges (operand and callee references) of a graph
    #[arg(long, env = "HLORANK_MAX_EDGES", value_name = "EDGES", default_value_t = Limits::default().edges)]
    pub max_edges: usize,

    /// Maximum number of configurations of a batch
    #[arg(long, env = "HLORANK_MAX_CONFIGS", value_name = "CONFIGS", default_value_t = Limits::default().configs)]
    pub max_configs: usize,

    /// Maximum number of configurations times configurable nodes of a batch; each entry takes 2 bytes
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
    /// Returns the models that answer requests which name none.
    #[must_use]
    pub fn default_models(&self) -> Vec<(Task, String)> {
        vec![(Task::Layout, self.default_layout_model.clone()), (Task::Tile, self.default_tile_model.clone())]
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

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
        let expected = [(Task::Layout, "layout-xla-cpu"), (Task::Tile, "tile-iree-cpu")];
        assert_eq!(settings.default_models(), expected.map(|(task, name)| (task, name.to_owned())));
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
