//! `hlorank bench`: an open-loop load and its report.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use hlorank_client::trace;
use hlorank_tests::{TILE_MODEL, TestServer, fixture};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    command_line::{CommandLine, NO_SERVER},
    measured_file::MeasuredFile,
    proxy::Proxy,
    table::rows,
};

fn count(report: &Value, field: &str) -> u64 {
    report[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field}: {report}"))
}

fn milliseconds(report: &Value, quantile: &str) -> f64 {
    report["latency_ms"][quantile]
        .as_f64()
        .unwrap_or_else(|| panic!("{quantile}: {report}"))
}

/// Returns the latency within which a quarter of the calls were answered.
fn quarter_milliseconds(report: &Value) -> f64 {
    let mut percentiles = list(&report["percentiles"]).iter();
    let quarter = percentiles.find(|percentile| percentile["percent"].as_f64() >= Some(25.0));
    quarter.unwrap_or_else(|| panic!("{report}"))["ms"]
        .as_f64()
        .unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Returns the arguments of a load over both measured files.
fn arguments<'a>(files: &'a [MeasuredFile; 2], others: &[&'a str]) -> Vec<&'a str> {
    [&["bench", files[0].argument(), files[1].argument()], others].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_a_load_is_counted_by_its_size() {
    let server = TestServer::start().await;
    let files = MeasuredFile::both();
    let flags = [
        "--weights",
        "1,3",
        "--configs",
        "5:2,60",
        "--distinct",
        "3",
        "--rate",
        "150",
        "--duration",
        "2s",
    ];
    let report = CommandLine::of(&server).json(&arguments(&files, &flags));
    let (all, classes) = (&report["all"], list(&report["calls"]));
    assert!(count(all, "due") > 200, "{all}");
    for class in classes.iter().chain([all]) {
        assert_eq!(count(class, "due"), count(class, "answered"), "{class}");
        assert_eq!(
            ["sent", "not_sent", "failed", "unfinished"].map(|field| count(class, field))[1..],
            [0; 3]
        );
        let quantiles =
            ["p50", "p90", "p99", "p99_9", "max"].map(|quantile| milliseconds(class, quantile));
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{class}");
        let percentiles = list(&class["percentiles"]);
        assert!(
            percentiles.is_sorted_by_key(|point| point["ms"].as_f64().unwrap().to_bits()),
            "{class}"
        );
        assert_eq!(
            percentiles.last().unwrap()["ms"],
            class["latency_ms"]["max"]
        );
    }
    let sizes: Vec<u64> = classes
        .iter()
        .map(|class| count(class, "max_configurations"))
        .collect();
    assert_eq!(sizes, [10, 100]);
    let [few, many] = [0, 1].map(|class| count(&classes[class], "due"));
    assert!(
        few + many == count(all, "due") && few > many,
        "{few} and {many}"
    );
    let over_time: u64 = list(&report["over_time"])
        .iter()
        .map(|part| count(part, "answered"))
        .sum();
    assert_eq!(over_time, count(all, "answered"));
    assert_eq!(
        (&report["interrupted"], list(&report["failures"]).len()),
        (&false.into(), 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_is_counted_for_every_call_that_was_due_meanwhile() {
    const STALL: Duration = Duration::from_secs(1);
    let server = TestServer::start().await;
    let proxy = Proxy::to(&server).await;
    let command_line = CommandLine::calling(proxy.endpoint(), NO_SERVER);
    let file = MeasuredFile::tile();
    let mut command = command_line.command(&[
        "bench",
        file.argument(),
        "--rate",
        "100",
        "--duration",
        "4s",
        "--json",
    ]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    proxy.first_call().await;
    sleep(Duration::from_secs(1)).await;
    proxy.stall(STALL).await;
    let report = report_of(child);
    // A quarter of the calls waited, each for the rest of the stall. A closed-loop load would have sent one call per
    // connection meanwhile: too few for the 99th percentile of 400.
    let all = &report["all"];
    assert_eq!(count(all, "answered"), count(all, "due"));
    assert!(milliseconds(all, "p90") > 350.0, "{all}");
    assert!(milliseconds(all, "p99") > 850.0, "{all}");
    assert!(
        quarter_milliseconds(all) < 250.0,
        "others were as quick as ever: {all}"
    );
    let slow = list(&report["over_time"])
        .iter()
        .filter(|part| part["latency_ms"]["max"].as_f64() > Some(100.0));
    let slow: f64 = slow.map(|part| part["seconds"].as_f64().unwrap()).sum();
    assert!(slow > 0.7, "{slow} seconds of it were slow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_beyond_the_calls_in_flight_is_not_sent_and_told() {
    let server = TestServer::start().await;
    let proxy = Proxy::to(&server).await;
    let command_line = CommandLine::calling(proxy.endpoint(), NO_SERVER);
    let file = MeasuredFile::tile();
    let arguments = [
        "bench",
        file.argument(),
        "--rate=200",
        "--duration=2s",
        "--max-in-flight=5",
    ];
    let child = command_line
        .command(&arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    proxy.first_call().await;
    proxy.stall(Duration::from_secs(1)).await;
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let unsent = rows(&text, "not answered");
    assert_eq!(
        unsent[0][0], "not sent: 5 calls waited for their answers",
        "{text}"
    );
    let [due, sent, answered] = [1, 2, 3].map(|column| {
        rows(&text, "configurations")[0][column]
            .parse::<u64>()
            .unwrap()
    });
    assert_eq!(
        (sent, due - sent),
        (answered, unsent[0][1].parse().unwrap()),
        "{text}"
    );
    assert!(due - sent > 50, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_counted_by_code_and_do_not_stop_the_load() {
    let server = TestServer::start().await;
    let files = MeasuredFile::both();
    // The layouts of the other file do not belong to this graph.
    let model = format!("--model={TILE_MODEL}");
    let flags = [model.as_str(), "--rate=100", "--duration=1s"];
    let report = CommandLine::of(&server).json(&arguments(&files, &flags));
    let [failure] = list(&report["failures"]) else {
        panic!("{report}")
    };
    assert_eq!(
        (&failure["code"], &failure["reason"]),
        (&"INVALID_ARGUMENT".into(), &"MODEL_TASK_MISMATCH".into())
    );
    let [failed, answered] = ["failed", "answered"].map(|field| count(&report["all"], field));
    assert!(failed > 10 && answered > 10, "{report}");
    assert_eq!(count(failure, "calls"), failed);
    assert_eq!(failed + answered, count(&report["all"], "due"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_seed_is_the_same_load() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::of(&server), MeasuredFile::tile());
    let load = |seed| {
        let arguments = [
            "bench",
            file.argument(),
            "--rate=200",
            "--duration=1s",
            "--configs=3,30",
            "--seed",
            seed,
        ];
        let report = command_line.json(&arguments);
        list(&report["over_time"])
            .iter()
            .chain(list(&report["calls"]))
            .map(|part| count(part, "due"))
            .collect::<Vec<_>>()
    };
    assert_eq!(load("7"), load("7"));
    assert_ne!(load("7"), load("8"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_is_interrupted_tells_what_came_of_it() {
    let server = TestServer::start().await;
    let proxy = Proxy::to(&server).await;
    let command_line = CommandLine::calling(proxy.endpoint(), NO_SERVER);
    let file = MeasuredFile::tile();
    let mut command =
        command_line.command(&["bench", file.argument(), "--duration", "1h", "--json"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    proxy.first_call().await;
    sleep(Duration::from_secs(1)).await;
    let process = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(process, Signal::INT).unwrap();
    let report = report_of(child);
    assert_eq!(report["interrupted"], true);
    assert!(count(&report["all"], "answered") > 10, "{report}");
    assert!(report["seconds"].as_f64() < Some(30.0), "{report}");
}

/// Runs a command that succeeds, and returns its JSON report.
fn report_of(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graph_without_configurations_gets_random_layouts() {
    let server = TestServer::start().await;
    let module = fixture("hlo/mlp_train.before_opt.hlo.txt");
    let arguments = [
        "bench",
        module.to_str().unwrap(),
        "--rate=50",
        "--duration=1s",
        "--distinct=5",
    ];
    let report = CommandLine::of(&server).json(&arguments);
    assert_eq!(count(&report["calls"][0], "max_configurations"), 100);
    assert_eq!(
        count(&report["all"], "answered"),
        count(&report["all"], "due")
    );
}

/// Recorded search of layouts. Each step ranks the best layout so far and neighbours of it.
const SEARCH: &str = "traces/search_layouts.trace";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_is_sent_once_at_its_times_or_again_and_again_at_a_rate() {
    let server = TestServer::start().await;
    let (command_line, path) = (CommandLine::of(&server), fixture(SEARCH));
    let calls = trace::read(&path).unwrap();
    let path = path.to_str().unwrap();
    let report = command_line.json(&["bench", "--trace", path, "--speed", "0.5"]);
    let last = 2.0 * calls.last().unwrap().at.as_secs_f64();
    assert!(
        (report["plan"]["seconds"].as_f64().unwrap() - last).abs() < 1e-6,
        "{report}"
    );
    for count_of in ["due", "answered"] {
        assert_eq!(count(&report["all"], count_of), calls.len() as u64);
    }
    let report = command_line.json(&["bench", "--trace", path, "--rate=40", "--duration=3s"]);
    assert!(
        count(&report["all"], "answered") > calls.len() as u64,
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_the_calls_is_streamed_and_told_apart() {
    let server = TestServer::start().await;
    let (command_line, files) = (CommandLine::of(&server), MeasuredFile::both());
    let plot = command_line.write("load.svg", "");
    let flags = [
        "--configs=5,60",
        "--distinct=3",
        "--rate=150",
        "--duration=2s",
        "--streams=0.3",
        "--batch=25",
    ];
    let report = command_line.json(&arguments(
        &files,
        &[&flags[..], &["--plot", plot.to_str().unwrap()]].concat(),
    ));
    let classes = list(&report["calls"]);
    let kinds: Vec<_> = classes
        .iter()
        .map(|class| {
            (
                class["method"].as_str().unwrap(),
                count(class, "max_configurations"),
            )
        })
        .collect();
    let expected =
        ["RankConfigs", "RankConfigsStream"].map(|method| [10, 100].map(|most| (method, most)));
    assert_eq!(kinds, expected.as_flattened());
    assert!(
        report["all"]["method"].is_null() && list(&report["failures"]).is_empty(),
        "{report}"
    );
    for class in classes {
        assert_eq!(count(class, "due"), count(class, "answered"), "{class}");
        assert!(milliseconds(class, "p50") > 0.0, "{class}");
    }
    let streamed = count(&classes[2], "due") + count(&classes[3], "due");
    let all = count(&report["all"], "due");
    assert!(
        (2 * all..4 * all).contains(&(10 * streamed)),
        "{streamed} of {all}"
    );
    let scrape = server.scrape().await;
    for (method, sent) in [
        ("RankConfigsStream", streamed),
        ("RankConfigs", all - streamed),
    ] {
        let calls = [TILE_MODEL, "layout-xla-cpu"].map(|model| {
            let labels = [("method", method), ("model", model), ("code", "OK")];
            scrape.value("hlorank_requests_total", &labels)
        });
        assert_eq!(
            calls.iter().sum::<f64>().to_string(),
            sent.to_string(),
            "{method}"
        );
    }
    let plot = std::fs::read_to_string(&plot).unwrap();
    assert!(
        plot.contains("up to 100 configurations, streamed"),
        "{plot}"
    );
    let text = command_line.text(&arguments(&files, &flags));
    let sizes: Vec<String> = rows(&text, "configurations")
        .iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(
        sizes,
        [
            "up to 10",
            "up to 100",
            "up to 10, streamed",
            "up to 100, streamed",
            "all"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_stalls_is_as_late_as_a_call() {
    const STALL: Duration = Duration::from_secs(1);
    let server = TestServer::start().await;
    let proxy = Proxy::to(&server).await;
    let command_line = CommandLine::calling(proxy.endpoint(), NO_SERVER);
    let file = MeasuredFile::tile();
    let arguments = [
        "bench",
        file.argument(),
        "--rate=100",
        "--duration=3s",
        "--streams=1",
        "--batch=10",
        "--json",
    ];
    let child = command_line
        .command(&arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    proxy.first_call().await;
    sleep(Duration::from_secs(1)).await;
    proxy.stall(STALL).await;
    let report = report_of(child);
    let all = &report["all"];
    assert_eq!(count(all, "answered"), count(all, "due"), "{report}");
    assert!(
        milliseconds(all, "p90") > 350.0 && quarter_milliseconds(all) < 350.0,
        "{all}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_was_recorded_is_sent_again() {
    let server = TestServer::start().await;
    let (command_line, files) = (CommandLine::of(&server), MeasuredFile::both());
    let path = command_line.write("mixed.trace", "");
    let path = path.to_str().unwrap();
    let flags = [
        "--configs=5,60",
        "--rate=100",
        "--duration=1s",
        "--streams=0.3",
        "--batch=25",
        "--record",
        path,
    ];
    let sent = command_line.json(&arguments(&files, &flags));
    let recorded = trace::read(path.as_ref()).unwrap();
    assert_eq!(recorded.len() as u64, count(&sent["all"], "sent"));
    assert!(
        recorded
            .iter()
            .filter_map(|recorded| recorded.call.batch())
            .all(|batch| batch.get() == 25)
    );
    let again = command_line.json(&["bench", "--trace", path]);
    let by_kind = |report: &Value| -> Vec<_> {
        list(&report["calls"])
            .iter()
            .map(|class| {
                [
                    &class["method"],
                    &class["max_configurations"],
                    &class["answered"],
                ]
                .map(Value::to_string)
            })
            .collect()
    };
    assert_eq!(by_kind(&again), by_kind(&sent));
    assert_eq!(by_kind(&sent).len(), 4);
    // A call has the same configurations, streamed or not.
    let client = server.client().await;
    let streamed = &recorded
        .iter()
        .find(|recorded| recorded.call.batch().is_some())
        .unwrap()
        .call;
    let [one, other] = [
        client.make(streamed).await.unwrap(),
        client.rank(&streamed.request()).await.unwrap(),
    ];
    assert_eq!((one.best, one.scored), (other.best, other.scored));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_has_the_scores_of_the_search_that_it_is_of() {
    let (cached, uncached) = (
        TestServer::start().await,
        TestServer::start_with(&["--embedding-cache-bytes=0"]).await,
    );
    let (cached, uncached) = (cached.client().await, uncached.client().await);
    let mut best = None;
    for recorded in trace::read(&fixture(SEARCH)).unwrap() {
        let scores = cached.rank(&recorded.call.request()).await.unwrap().scores;
        assert_eq!(
            scores,
            uncached
                .rank(&recorded.call.request())
                .await
                .unwrap()
                .scores
        );
        assert_eq!(scores.len(), recorded.call.configurations());
        assert_eq!(
            scores[0],
            best.unwrap_or(scores[0]),
            "a step begins with the best of the one before"
        );
        best = scores.into_iter().min_by(f32::total_cmp);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plot_has_a_line_for_every_size_and_for_quantiles_over_time() {
    let server = TestServer::start().await;
    let command_line = CommandLine::of(&server);
    let (path, file) = (command_line.write("load.svg", ""), MeasuredFile::tile());
    let arguments = [
        "bench",
        file.argument(),
        "--duration=1s",
        "--configs=5,50",
        "--plot",
        path.to_str().unwrap(),
    ];
    let text = command_line.text(&arguments);
    let plot = std::fs::read_to_string(&path).unwrap();
    assert!(
        plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"),
        "{plot}"
    );
    for words in [
        "up to 10 configurations",
        "up to 100 configurations",
        "all",
        "99%",
        "p50",
        "p99",
        "max",
    ] {
        assert!(plot.contains(words), "{words}");
    }
    let sizes: Vec<String> = rows(&text, "configurations")
        .iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(sizes, ["up to 10", "up to 100", "all"]);
}

#[test]
fn a_server_that_is_not_there_exits_with_four_and_wrong_arguments_with_two() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::tile());
    let (code, message) = command_line.failure(&["bench", file.argument()]);
    assert!(
        code == Some(4) && message.starts_with("error: no connection to "),
        "{message}"
    );
    for arguments in [
        &["bench"][..],
        &["bench", file.argument(), "--weights=1,2"],
        &["bench", file.argument(), "--duration=1d"],
        &["bench", file.argument(), "--configs=0"],
        &["bench", file.argument(), "--trace=search.trace"],
        &["bench", file.argument(), "--streams=1.5"],
        &["bench", file.argument(), "--streams=1", "--batch=0"],
        &["bench", "--trace=search.trace", "--streams=1"],
        &["bench", "--trace=missing.trace"],
    ] {
        assert_eq!(command_line.failure(arguments).0, Some(2), "{arguments:?}");
    }
}
