//! `hlorank measurements export` and `import`: what a server keeps goes to files, and from there to another server.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// Runs a command about measurements.
pub(super) fn run(server: &TestServer, arguments: &[&str]) -> Output {
    let mut command = program("hlorank");
    command
        .args(["--json", "measurements"])
        .args(arguments)
        .env("HLORANK_ENDPOINT", server.endpoint());
    command.output().unwrap()
}

/// Returns the document that a command about measurements prints.
pub(super) fn hlorank(server: &TestServer, arguments: &[&str]) -> Value {
    let output = run(server, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(super) fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_while_clients_report_has_all_that_was_acknowledged_before() {
    let (folder, one, client) = storing_server(&[]).await;
    let (_other_folder, other, of_other) = storing_server(&[]).await;
    let kernel = MeasuredList::kernels().remove(0);
    let tiles = kernel.seconds.len();
    let acknowledged = Arc::new(AtomicU32::new(0));
    let reported = Arc::clone(&acknowledged);
    let reporting = tokio::spawn(async move {
        for number in 1.. {
            let ids = (0..tiles).map(|tile| format!("{number} {tile}"));
            let adapt = kernel.measured(TARGET).ids(ids);
            let report = client.report_measurements(&kernel.handle, &adapt);
            report.await.unwrap();
            reported.store(number, Ordering::SeqCst);
        }
    });
    let until = async |number: u32| {
        while acknowledged.load(Ordering::SeqCst) < number {
            sleep(Duration::from_millis(5)).await;
        }
    };
    until(20).await;
    let before = acknowledged.load(Ordering::SeqCst);
    let exported = folder.path().join("exported");
    hlorank(&one, &["export", "--out", path(&exported)]);
    // Reports go on during an export and after it.
    until(before + 1).await;
    reporting.abort();
    hlorank(&other, &["import", path(&exported)]);
    let kept = kept(&of_other).await.into_iter();
    let ids: BTreeSet<_> = kept.flat_map(|graph| graph.ids).collect();
    for number in 1..=before {
        for tile in 0..tiles {
            let id = format!("{number} {tile}");
            assert!(ids.contains(id.as_bytes()), "{id} of {before}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn measured_files_of_others_need_a_target() {
    let (_folder, server, client) = storing_server(&[]).await;
    let file = fixture("measured/tile_kernels.pb");
    let refused = run(&server, &["import", path(&file)]);
    assert_eq!(refused.status.code(), Some(2));
    says!(String::from_utf8(refused.stderr).unwrap(), "--target");
    let reported = hlorank(&server, &["import", path(&file), "--target", TARGET]);
    assert!(reported["accepted"].as_u64().unwrap() > 10, "{reported}");
    assert!(!kept(&client).await.is_empty());
}

/// When the measurements of ann were reported: in 1975. Those of bob are of today.
const OLD: u64 = 157_800_000;

/// Reports every second configuration of a graph from `first` as a reporter: a failure, then times of several runs.
async fn report(client: &Client, graph: &MeasuredGraph, reporter: &str, first: usize) {
    let all = configurations(graph);
    let chosen: Vec<usize> = (first..all.len()).step_by(2).take(10).collect();
    let seconds = seconds_of(graph);
    let mut outcomes = vec![MeasuredOutcome::Failed(MeasurementFailure::Crash)];
    outcomes.extend(chosen[1..].iter().map(|&config| MeasuredOutcome::Time {
        seconds: seconds[config] / 3.0,
        repeats: 3,
    }));
    let old = if reporter == "ann" { chosen.len() } else { 0 };
    let details = ReportDetails {
        machine: format!("machine of {reporter}"),
        ..reported(reporter, &vec![OLD; old])
    };
    let adapt = Adapt::new(TARGET).measured(&all.select(&chosen), &outcomes);
    let handle = GraphHandle::from_measured(graph);
    let report = client.report_measurements_with(&details, &handle, &adapt);
    report.await.unwrap();
}

/// The bits of the answer that rests on all that a server keeps of a graph.
async fn adapted(client: &Client, graph: &MeasuredGraph) -> Vec<u32> {
    let ranking = rank_measured(client, graph, Some(stored())).await;
    let used = ranking.adaptation.as_ref().unwrap().stored_measurements;
    assert!(used > 2, "{}", graph.name);
    all_bits(&ranking)
}

/// Asserts that training can read an exported file.
fn assert_trainable(file: &Value) {
    assert_eq!(file["trainable"], true, "{file}");
    let path = Path::new(file["path"].as_str().unwrap());
    let read = GraphFile::read(path, Task::Tile, &Limits::default());
    let read = read.unwrap().graphs.remove(0);
    assert_eq!(file["graph"], read.graph.hash().to_string());
    let times = read.measurements.unwrap().run_times;
    let failures = 2;
    assert_eq!(file["measurements"], times.len() + failures, "{file}");
    assert!(times.iter().all(|time| *time > 0), "{file}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_keeps_answers_and_who_reported_unless_it_is_told_otherwise() {
    let (folder, one, of_one) = storing_server(&[]).await;
    let (_other_folder, other, of_other) = storing_server(&[]).await;
    let (_third_folder, third, of_third) = storing_server(&[]).await;
    let graphs = measured_graphs();
    for graph in &graphs {
        report(&of_one, graph, "ann", 0).await;
        report(&of_one, graph, "bob", 1).await;
    }
    let exported = folder.path().join("exported");
    let written = hlorank(&one, &["export", "--out", path(&exported)]);
    let files = written["files"].as_array().unwrap();
    assert_eq!(files.len(), graphs.len());
    files.iter().for_each(assert_trainable);
    hlorank(&other, &["import", path(&exported)]);
    assert_eq!(kept(&of_other).await, kept(&of_one).await);
    for graph in &graphs {
        let expected = adapted(&of_one, graph).await;
        assert_eq!(adapted(&of_other, graph).await, expected, "{}", graph.name);
    }

    hlorank(&third, &["import", "--as-own", path(&exported)]);
    let own = kept(&of_third).await;
    let mut reporters = own.iter().flat_map(|graph| &graph.reporters);
    assert!(reporters.all(|reporter| reporter == "127.0.0.1"));
    let old = hlorank(&third, &["list", "--before", "1990-01-01"]);
    // What a client reports as its own is of today.
    assert_eq!(old["kept"], json!([]));

    let listed = hlorank(&other, &["list", "--target", TARGET]);
    let of = |name: &str| -> u64 {
        let kept = listed["kept"].as_array().unwrap().iter();
        let kept = kept.filter(|kept| kept["reporter"] == name);
        kept.map(|kept| kept["measurements"].as_u64().unwrap())
            .sum()
    };
    assert!(of("ann") > 10 && of("bob") > 10, "{listed}");
    for age in [["--before", "1990-01-01"], ["--older-than", "3650d"]] {
        let old = hlorank(&other, &["list", age[0], age[1]]);
        let old = old["kept"].as_array().unwrap();
        assert!(!old.is_empty());
        for kept in old {
            assert_eq!(kept["reporter"], "ann");
            assert_eq!(kept["last_reported_at"], OLD);
        }
    }
    for (arguments, count) in [
        (&["--reporter", "bob", "--before", "1990-01-01"][..], 0),
        (&["--older-than", "3650d"][..], of("ann")),
        (&["--target", TARGET][..], of("bob")),
    ] {
        let deleted = hlorank(&other, &[&["delete"], arguments].concat());
        assert_eq!(deleted["deleted"], count, "{arguments:?}");
    }
}
