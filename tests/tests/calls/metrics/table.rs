//! The content of `/metrics` before any traffic.

use std::io::Write as _;

use hlorank_proto::methods::METHODS;
use hlorank_tests::prelude::*;

/// Metrics that are not zero before traffic, except those of the process and the models.
const SET_AT_START: [&str; 6] = [
    "hlorank_build_info",
    "hlorank_cache_max_bytes",
    "hlorank_compute_threads",
    "hlorank_max_call_bytes",
    "hlorank_max_queued_nodes",
    "hlorank_max_requests",
];

#[tokio::test]
async fn every_series_is_there_at_zero_before_traffic() {
    let scrape = TestServer::start_with(&[&all_models_flag()])
        .await
        .scrape()
        .await;
    // The scrape itself is a connection to the metrics listener.
    for Sample {
        name,
        labels,
        value,
    } in scrape
        .samples
        .iter()
        .filter(|sample| sample.label("listener") != Some("metrics"))
    {
        let is_set = SET_AT_START.contains(&name.as_str())
            || ["process_", "hlorank_model_"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        assert!(is_set || *value == 0.0, "{name} {labels:?} {value}");
    }
    let models = [
        "layout-xla-cpu",
        "layout-xla-cpu-sage",
        TILE_MODEL,
        SMALL_TILE_MODEL,
        "none",
    ];
    for method in ["RankConfigs", "RankConfigsStream", "SuggestConfigs"] {
        for model in models {
            for code in [
                "OK",
                "CANCELLED",
                "INVALID_ARGUMENT",
                "RESOURCE_EXHAUSTED",
                "INTERNAL",
            ] {
                let labels = [("method", method), ("model", model), ("code", code)];
                assert_eq!(scrape.value("hlorank_requests_total", &labels), 0.0);
            }
            let labels = [("method", method), ("model", model)];
            assert_eq!(
                scrape.value("hlorank_request_duration_seconds_count", &labels),
                0.0
            );
        }
    }
    for method in METHODS {
        let labels = [("method", method.name), ("model", "none"), ("code", "OK")];
        assert_eq!(scrape.value("hlorank_requests_total", &labels), 0.0);
    }
}

#[tokio::test]
async fn series_of_ten_models_are_at_most_3100() {
    let models = Artifacts::all();
    let mut folders: Vec<_> = fs::read_dir(models.folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // The models that calls get by default are two of them.
    folders.sort_by_key(|folder| {
        !["layout-xla-cpu", TILE_MODEL]
            .iter()
            .any(|name| folder.ends_with(name))
    });
    folders
        .iter()
        .skip(10)
        .for_each(|folder| fs::remove_dir_all(folder).unwrap());
    let server = TestServer::start_with(&[&models.flag()]).await;
    let scrape = server.scrape().await;
    let names: BTreeSet<_> = scrape
        .samples
        .iter()
        .filter_map(|sample| sample.label("model"))
        .collect();
    assert_eq!(names.len(), 10 + 1, "ten, and none: {names:?}");
    assert!(
        scrape.samples.len() <= 3100,
        "{} series",
        scrape.samples.len()
    );
}

/// Returns one line per metric, in the format of the page.
fn rows(page: &str) -> Vec<&str> {
    let table = page.split("| metric |").nth(1).expect("a table of metrics");
    table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect()
}

#[tokio::test]
async fn the_table_is_what_metrics_shows() {
    let scrape = TestServer::start().await.scrape().await;
    let row = |(name, family): (&String, &hlorank_tests::ScrapedFamily)| {
        let labels: Vec<String> = family
            .labels
            .iter()
            .map(|label| format!(" `{label}`"))
            .collect();
        assert!(!family.help.is_empty(), "{name} has no description");
        format!("| `{name}` | {} |{} |", family.kind, labels.join(","))
    };
    let shown: Vec<String> = scrape.families.iter().map(row).collect();
    let page = fs::read_to_string(repository("deploy/METRICS.md")).unwrap();
    assert!(
        rows(&page) == shown,
        "deploy/METRICS.md is to have this table:\n{}",
        shown.join("\n")
    );
}

/// `OpenMetrics` names a family without the `_total` of its counter, so a gauge and a counter that differ only in it would be
/// one family of two types.
#[tokio::test]
async fn every_family_has_a_name_of_its_own_in_open_metrics() {
    let scrape = TestServer::start().await.scrape().await;
    let names: BTreeSet<&str> = scrape
        .families
        .keys()
        .map(|name| name.strip_suffix("_total").unwrap_or(name))
        .collect();
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
    check
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = check.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8(text).unwrap())
        .concat();
    assert!(output.status.success() && said.is_empty(), "{said}");
}
