//! The environment variables of hlorank, and the misspelled ones among those of a process.

use std::ffi::OsString;

/// Every variable that a program, a client or a test of hlorank reads. All programs know all of them, because they often
/// share an environment.
pub const VARIABLES: [&str; 57] = [
    "HLORANK_ADMIN_ENDPOINT",
    "HLORANK_ADMIN_LISTEN",
    "HLORANK_ALLOWED_HOSTS",
    "HLORANK_CA",
    "HLORANK_CERTIFICATE",
    "HLORANK_CONFIGURATION",
    "HLORANK_DECISIONS",
    "HLORANK_DEFAULT_MODELS",
    "HLORANK_DRAIN_SECONDS",
    "HLORANK_EMBEDDING_CACHE_BYTES",
    "HLORANK_ENDPOINT",
    "HLORANK_FUZZ_SECONDS",
    "HLORANK_FUZZ_SEED",
    "HLORANK_GRAPH_CACHE_BYTES",
    "HLORANK_HELM",
    "HLORANK_KEEP_MEASUREMENTS_FOR",
    "HLORANK_LISTEN",
    "HLORANK_LOG",
    "HLORANK_LOG_FORMAT",
    "HLORANK_MAX_CALL_BYTES",
    "HLORANK_MAX_CLIENT_REQUESTS",
    "HLORANK_MAX_CONFIGS",
    "HLORANK_MAX_CONFIG_ENTRIES",
    "HLORANK_MAX_CONNECTIONS",
    "HLORANK_MAX_LOAD_SECONDS",
    "HLORANK_MAX_MEASUREMENTS_BYTES",
    "HLORANK_MAX_MESSAGE_BYTES",
    "HLORANK_MAX_MESSAGE_SECONDS",
    "HLORANK_MAX_NODES",
    "HLORANK_MAX_QUEUED_NODES",
    "HLORANK_MAX_REQUESTS",
    "HLORANK_MAX_RUN_SECONDS",
    "HLORANK_MAX_SLOWDOWN",
    "HLORANK_MAX_STREAM_IDLE_SECONDS",
    "HLORANK_MEASURED",
    "HLORANK_MEASUREMENTS",
    "HLORANK_METRICS_LISTEN",
    "HLORANK_MODELS",
    "HLORANK_MODELS_KEY",
    "HLORANK_ONNXRUNTIME",
    "HLORANK_POLL_SECONDS",
    "HLORANK_PROMETHEUS",
    "HLORANK_PROXIES",
    "HLORANK_REPLAY_SHARE",
    "HLORANK_RETAIN_VERSIONS",
    "HLORANK_SHARED",
    "HLORANK_SOAK_RATE",
    "HLORANK_SOAK_SECONDS",
    "HLORANK_STREAM_WINDOW_BYTES",
    "HLORANK_TLS_CERTIFICATE",
    "HLORANK_TLS_CLIENT_CA",
    "HLORANK_TLS_KEY",
    "HLORANK_TOKEN",
    "HLORANK_TOKENS",
    "HLORANK_TOKEN_FILE",
    "HLORANK_TRUSTED_PROXIES",
    "HLORANK_WORKERS",
];

const PREFIX: &str = "HLORANK_";

/// How alike two names are at least, from 0 to 1, for one to be suggested for the other.
const MIN_LIKENESS: f64 = 0.8;

/// Returns a sentence for each variable whose name begins as those of hlorank do and that nothing reads.
///
/// Kubernetes describes each service to every container by variables such as `HLORANK_SERVICE_HOST` and
/// `HLORANK_PORT_7070_TCP`, which are no mistakes.
pub fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let names = names.filter_map(|name| name.into_string().ok());
    let unknown = names.filter(|name| {
        name.starts_with(PREFIX) && !VARIABLES.contains(&name.as_str()) && !is_of_kubernetes(name)
    });
    let mut unknown: Vec<String> = unknown.collect();
    unknown.sort_unstable();
    unknown.iter().map(|name| sentence(name)).collect()
}

fn is_of_kubernetes(name: &str) -> bool {
    let is_port = |port: &str| {
        let number = port.split('_').next().unwrap_or_default();
        port.is_empty() || number.parse::<u16>().is_ok()
    };
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name
            .rsplit_once("_PORT_")
            .is_some_and(|(_, port)| is_port(port))
}

fn sentence(name: &str) -> String {
    let likeness =
        |known: &&str| strsim::jaro_winkler(&name[PREFIX.len()..], &known[PREFIX.len()..]);
    let closest = VARIABLES
        .iter()
        .copied()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let meant = closest.filter(|known| likeness(known) >= MIN_LIKENESS);
    let hint = meant.map_or_else(String::new, |known| format!("; did you mean {known}?"));
    format!(
        "the environment variable {name} is ignored, because nothing of this version reads it{hint}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(names: &[&str]) -> Vec<String> {
        unknown_variables(names.iter().map(OsString::from))
    }

    #[test]
    fn a_misspelled_variable_is_named_with_the_one_that_was_meant() {
        let found = sentences(&["HLORANK_METRIC_LISTEN", "HLORANK_LISTEN", "PATH"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("HLORANK_METRIC_LISTEN is ignored"),
            "{found:?}"
        );
        assert!(
            found[0].ends_with("did you mean HLORANK_METRICS_LISTEN?"),
            "{found:?}"
        );
        assert!(!sentences(&["HLORANK_XYZ"])[0].contains("did you mean"));
    }

    #[test]
    fn variables_of_kubernetes_are_no_mistakes() {
        let names = [
            "HLORANK_SERVICE_HOST",
            "HLORANK_SERVICE_PORT",
            "HLORANK_SERVICE_PORT_GRPC",
            "HLORANK_PORT",
            "HLORANK_PORT_7070_TCP",
            "HLORANK_PORT_7070_TCP_ADDR",
            "HLORANK_METRICS_SERVICE_HOST",
            "HLORANK_METRICS_PORT_7071_TCP_PROTO",
        ];
        assert_eq!(sentences(&names), [""; 0]);
    }

    #[test]
    fn the_list_is_sorted_and_has_no_name_twice() {
        assert!(VARIABLES.is_sorted_by(|one, next| one < next));
    }
}
