//! The content of `/metrics` before any traffic.

use std::io::Write as _;

use hlorank_proto::methods::METHODS;
use hlorank_tests::prelude::*;

/// Metrics that are not zero before traffic, and the beginnings of those of the process and the models.
const SET_AT_START: [&str; 8] = [
    "hlorank_build_info",
    "hlorank_cache_max_bytes",
    "hlorank_compute_threads",
    "hlorank_max_call_bytes",
    "hlorank_max_queued_nodes",
    "hlorank_max_requests",
    "hlorank_model_",
    "process_",
];

#[tokio::test]
async fn every_series_is_there_at_zero_before_traffic() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let scrape = server.scrape().await;
    for sample in &scrape.samples {
        let is_set = SET_AT_START.iter().any(|set| sample.name.starts_with(set));
        // The scrape itself is a connection to the metrics listener.
        let is_of_scrape = sample.label("listener") == Some("metrics");
        assert!(is_set || is_of_scrape || sample.value == 0.0, "{sample:?}");
    }
    let value = |name: &str, labels: &[(&str, &str)]| scrape.value(name, labels);
    for method in ["RankConfigs", "RankConfigsStream", "SuggestConfigs"] {
        for model in [
            "layout-xla-cpu",
            "layout-xla-cpu-sage",
            TILE_MODEL,
            SMALL_TILE_MODEL,
            "none",
        ] {
            let [method, model] = [("method", method), ("model", model)];
            for code in [
                "OK",
                "CANCELLED",
                "INVALID_ARGUMENT",
                "RESOURCE_EXHAUSTED",
                "INTERNAL",
            ] {
                let labels = [method, model, ("code", code)];
                assert_eq!(value("hlorank_requests_total", &labels), 0.0);
            }
            let durations = "hlorank_request_duration_seconds_count";
            assert_eq!(value(durations, &[method, model]), 0.0);
        }
    }
    for method in METHODS {
        let labels = [("method", method.name), ("model", "none"), ("code", "OK")];
        assert_eq!(value("hlorank_requests_total", &labels), 0.0);
    }
}

#[tokio::test]
async fn series_of_ten_models_are_at_most_3100() {
    let models = Artifacts::all();
    let folders = fs::read_dir(models.folder()).unwrap();
    let mut folders: Vec<_> = folders.map(|entry| entry.unwrap().path()).collect();
    // The models that calls get by default are two of them.
    let defaults = ["layout-xla-cpu", TILE_MODEL];
    folders.sort_by_key(|folder| !defaults.iter().any(|name| folder.ends_with(name)));
    for folder in &folders[10..] {
        fs::remove_dir_all(folder).unwrap();
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let samples = server.scrape().await.samples;
    let names: BTreeSet<_> = samples
        .iter()
        .filter_map(|sample| sample.label("model"))
        .collect();
    assert_eq!(names.len(), 10 + 1, "ten, and none: {names:?}");
    assert!(samples.len() <= 3100, "{} series", samples.len());
}

#[tokio::test]
async fn the_table_is_what_metrics_shows() {
    let scrape = TestServer::start().await.scrape().await;
    let row = |(name, family): (&String, &ScrapedFamily)| {
        let labels = family.labels.iter().map(|label| format!(" `{label}`"));
        let labels: Vec<String> = labels.collect();
        assert!(!family.help.is_empty(), "{name} has no description");
        format!("| `{name}` | {} |{} |", family.kind, labels.join(","))
    };
    let shown: Vec<String> = scrape.families.iter().map(row).collect();
    let page = fs::read_to_string(repository("deploy/METRICS.md")).unwrap();
    let table = page.split("| metric |").nth(1).expect("a table of metrics");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert!(
        rows == shown,
        "deploy/METRICS.md is to have this table:\n{}",
        shown.join("\n")
    );

    // `OpenMetrics` names a family without the `_total` of its counter, so a gauge and a counter that differ only in it would be
    // one family of two types.
    let names = scrape.families.keys();
    let names: BTreeSet<&str> = names.map(|name| name.trim_end_matches("_total")).collect();
    assert_eq!(names.len(), scrape.families.len());
}

#[tokio::test]
async fn promtool_finds_nothing_to_criticise() {
    let Some(promtool) = prometheus("promtool") else {
        return;
    };
    let server = TestServer::start().await;
    let (_, text) = http_get(server.metrics_address(), "/metrics").await;
    let mut check = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = check.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = check.wait_with_output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}");
}
