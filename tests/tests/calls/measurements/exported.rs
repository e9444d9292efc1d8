//! `hlorank measurements export` and `import`: what a server keeps goes to files, and from there to another server.

use std::sync::atomic::{AtomicU32, Ordering};

use hlorank_tests::prelude::*;

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
pub(crate) fn hlorank(server: &TestServer, arguments: &[&str]) -> Value {
    let output = run(server, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every second configuration of a graph from `first`: a failure, then times of several runs with ids.
async fn report(client: &Client, graph: &MeasuredGraph, first: usize) -> usize {
    let chosen: Vec<usize> = (first..configurations(graph).len())
        .step_by(2)
        .take(20)
        .collect();
    let times = &graph.measurements.as_ref().unwrap().run_times;
    let outcome = |(place, &config): (usize, &usize)| match place {
        0 => MeasuredOutcome::Failed(MeasurementFailure::Crash),
        _ => MeasuredOutcome::Time {
            seconds: times[config] as f64 * 1e-9 / 3.0,
            repeats: 3,
        },
    };
    let outcomes: Vec<MeasuredOutcome> = chosen.iter().enumerate().map(outcome).collect();
    let ids = chosen.iter().map(|config| format!("run {config}"));
    let adapt = Adapt::new(TARGET)
        .measured(&part(configurations(graph), chosen.clone()), &outcomes)
        .ids(ids);
    client
        .report_measurements(&GraphHandle::from_measured(graph), &adapt)
        .await
        .unwrap();
    chosen.len()
}

/// The bits of an answer that rests on all that a server keeps of a graph, and how many measurements these are.
async fn adapted(client: &Client, graph: &MeasuredGraph) -> (Vec<u32>, u32) {
    let handle = GraphHandle::from_measured(graph);
    let request = RankRequest::new(&handle, configurations(graph)).with_scores();
    let ranking = client
        .rank(&request.adapt(Some(Adapt::new(TARGET).use_stored())))
        .await
        .unwrap();
    (
        all_bits(&ranking),
        ranking.adaptation.unwrap().stored_measurements,
    )
}

pub(crate) fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_exchange_their_measurements_answer_alike() {
    let (folders, graphs) = ([folder(), folder(), folder()], measured_graphs());
    let (one, one_client) = start(folders[0].path(), &[]).await;
    let (other, other_client) = start(folders[1].path(), &[]).await;
    let (third, third_client) = start(folders[2].path(), &[]).await;
    let mut all = [0, 0];
    for graph in &graphs {
        all[0] += report(&one_client, graph, 0).await;
        all[1] += report(&other_client, graph, 1).await;
    }
    let [of_one, of_other] =
        [&folders[0], &folders[1]].map(|folder| folder.path().join("exported"));
    let written = hlorank(&one, &["export", "--out", path(&of_one)]);
    hlorank(
        &other,
        &["export", "--out", path(&of_other), "--target", TARGET],
    );
    let files = written["files"].as_array().unwrap();
    assert_eq!(files.len(), graphs.len());
    for file in files {
        assert_eq!(
            (file["target"].as_str(), file["trainable"].as_bool()),
            (Some(TARGET), Some(true))
        );
        let read = GraphFile::read(
            Path::new(file["path"].as_str().unwrap()),
            Task::Tile,
            &Limits::default(),
        );
        let read = read.unwrap().graphs.remove(0);
        assert_eq!(file["graph"], read.graph.hash().to_string());
        let times = read.measurements.unwrap().run_times;
        assert_eq!(
            times.len() as u64 + 1,
            file["measurements"].as_u64().unwrap(),
            "but the failure"
        );
        assert!(times.iter().all(|time| *time > 0));
    }
    let new = hlorank(&other, &["import", path(&of_one)]);
    assert_eq!(
        (new["accepted"].as_u64(), new["known"].as_u64()),
        (Some(all[0] as u64), Some(0))
    );
    hlorank(&one, &["import", path(&of_other)]);
    hlorank(&third, &["import", path(&of_other), path(&of_one)]);
    let known = hlorank(&one, &["import", path(&of_one)]);
    assert_eq!(
        (known["accepted"].as_u64(), known["known"].as_u64()),
        (Some(0), Some(all[0] as u64))
    );
    for graph in &graphs {
        let expected = adapted(&one_client, graph).await;
        assert!(expected.1 > 2, "{}", graph.name);
        assert_eq!(
            adapted(&other_client, graph).await,
            expected,
            "{}",
            graph.name
        );
        assert_eq!(
            adapted(&third_client, graph).await,
            expected,
            "{}, whose graph came from a file",
            graph.name
        );
    }
    let page = third_client
        .list_measurements(&ListMeasurementsRequest::default())
        .await
        .unwrap();
    assert_eq!(
        page,
        one_client
            .list_measurements(&ListMeasurementsRequest::default())
            .await
            .unwrap()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_while_clients_report_has_all_that_was_acknowledged_before() {
    let folders = [folder(), folder()];
    let (one, client) = start(folders[0].path(), &[]).await;
    let (other, other_client) = start(folders[1].path(), &[]).await;
    let kernel = Kernel::all().remove(0);
    let tiles = kernel.seconds.len();
    let acknowledged = Arc::new(AtomicU32::new(0));
    let reported = Arc::clone(&acknowledged);
    let reporting = tokio::spawn(async move {
        for number in 1.. {
            let ids = (0..tiles).map(|tile| format!("{number} {tile}"));
            let measured = run_times(kernel.seconds.iter().copied());
            let adapt = Adapt::new(TARGET)
                .measured(&kernel.tiles, &measured)
                .ids(ids);
            client
                .report_measurements(&kernel.handle, &adapt)
                .await
                .unwrap();
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
    let exported = folders[0].path().join("exported");
    hlorank(&one, &["export", "--out", path(&exported)]);
    // Reports go on during an export and after it.
    until(before + 1).await;
    reporting.abort();
    hlorank(&other, &["import", path(&exported)]);
    let kept = listed(&other_client, ListMeasurementsRequest::default()).await;
    let ids: BTreeSet<_> = kept.into_iter().flat_map(|graph| graph.ids).collect();
    for number in 1..=before {
        for tile in 0..tiles {
            let id = format!("{number} {tile}");
            assert!(ids.contains(id.as_bytes()), "{id} of {before}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn measured_files_of_others_need_a_target() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let file = hlorank_tests::fixture("measured/tile_kernels.pb");
    let mut command = program("hlorank");
    let command = command
        .args(["measurements", "import", path(&file)])
        .env("HLORANK_ENDPOINT", server.endpoint());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("--target"),
        "{said}"
    );
    let reported = hlorank(&server, &["import", path(&file), "--target", TARGET]);
    assert!(reported["accepted"].as_u64().unwrap() > 10, "{reported}");
    assert!(
        !client
            .list_measurements(&ListMeasurementsRequest::default())
            .await
            .unwrap()
            .graphs
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_keeps_who_reported_unless_it_is_told_otherwise() {
    let folders = [folder(), folder(), folder()];
    let (one, one_client) = start(folders[0].path(), &[]).await;
    let (other, other_client) = start(folders[1].path(), &[]).await;
    let (third, third_client) = start(folders[2].path(), &[]).await;
    for graph in measured_graphs() {
        // The measurements of ann were reported in 1975, and those of bob today.
        for (reporter, first) in [("ann", 0), ("bob", 1)] {
            let chosen: Vec<usize> = (first..configurations(&graph).len())
                .step_by(2)
                .take(10)
                .collect();
            let times = &graph.measurements.as_ref().unwrap().run_times;
            let time = |&config: &usize| MeasuredOutcome::Time {
                seconds: times[config] as f64 * 1e-9,
                repeats: 2,
            };
            let reported_at = match reporter {
                "ann" => vec![157_800_000; chosen.len()],
                _ => Vec::new(),
            };
            let outcomes: Vec<MeasuredOutcome> = chosen.iter().map(time).collect();
            let adapt =
                Adapt::new(TARGET).measured(&part(configurations(&graph), chosen), &outcomes);
            let handle = GraphHandle::from_measured(&graph);
            let details = hlorank_client::ReportDetails {
                reporter: reporter.to_owned(),
                reported_at,
                machine: format!("machine of {reporter}"),
                ..hlorank_client::ReportDetails::default()
            };
            one_client
                .report_measurements_with(&details, &handle, &adapt)
                .await
                .unwrap();
        }
    }
    let exported = folders[0].path().join("exported");
    hlorank(&one, &["export", "--out", path(&exported)]);
    hlorank(&other, &["import", path(&exported)]);
    let all = async |client: &Client| {
        client
            .list_measurements(&ListMeasurementsRequest::default())
            .await
            .unwrap()
    };
    assert_eq!(all(&other_client).await, all(&one_client).await);
    hlorank(&third, &["import", "--as-own", path(&exported)]);
    let own = all(&third_client).await;
    assert!(
        own.graphs
            .iter()
            .flat_map(|graph| &graph.reporters)
            .all(|reporter| reporter == "127.0.0.1")
    );
    let old = hlorank(&third, &["list", "--before", "1990-01-01"]);
    assert_eq!(
        old["kept"],
        json!([]),
        "what a client reports as its own is of today"
    );

    let listed = hlorank(&other, &["list", "--target", TARGET]);
    let of = |name: &str| {
        let kept = listed["kept"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|kept| kept["reporter"] == name);
        kept.map(|kept| kept["measurements"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(of("ann") > 10 && of("bob") > 10, "{listed}");
    for age in [["--before", "1990-01-01"], ["--older-than", "3650d"]] {
        let old = hlorank(&other, &["list", age[0], age[1]]);
        let old = old["kept"].as_array().unwrap();
        assert!(!old.is_empty() && old.iter().all(|kept| kept["reporter"] == "ann"));
        assert!(
            old.iter()
                .all(|kept| kept["last_reported_at"] == 157_800_000)
        );
    }
    let deleted = hlorank(
        &other,
        &["delete", "--reporter", "bob", "--before", "1990-01-01"],
    );
    assert_eq!(deleted["deleted"], 0);
    let deleted = hlorank(&other, &["delete", "--older-than", "3650d"]);
    assert_eq!(deleted["deleted"].as_u64(), Some(of("ann")));
    let deleted = hlorank(&other, &["delete", "--target", TARGET]);
    assert_eq!(deleted["deleted"].as_u64(), Some(of("bob")));
}
