//! Reported measurements are kept once, and adapt later calls as sent ones do.

use std::time::Instant;

use hlorank_client::{
    Adapt, Client, Configurations, GraphHandle, Limits, Measured, MeasurementsOf, RankRequest,
    Ranking, StreamRequest, SuggestRequest, TileBatch, TileConfiguration,
};
use hlorank_graph::{Digest, MeasuredGraph, Task};
use hlorank_proto::v1::{
    DeleteMeasurementsRequest, ListMeasurementsRequest, MeasurementFailure,
    ReportMeasurementsRequest,
};
use hlorank_tests::{
    TestServer, config_batch, configurations, graph_by_hash, measured_graphs, part, resident_bytes,
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{TARGET, bits, folder, start};

fn outcomes(graph: &MeasuredGraph, chosen: &[usize]) -> Vec<Measured> {
    let times = &graph.measurements.as_ref().unwrap().run_times;
    chosen
        .iter()
        .map(|&config| Measured::Time {
            seconds: times[config] as f64 * 1e-9,
            repeats: 1,
        })
        .collect()
}

fn adapt(graph: &MeasuredGraph, chosen: &[usize]) -> Adapt {
    Adapt::new(TARGET).measured(
        &part(configurations(graph), chosen.to_vec()),
        &outcomes(graph, chosen),
    )
}

fn stored() -> Adapt {
    Adapt::new(TARGET).use_stored()
}

/// Every third of the first configurations.
fn some(graph: &MeasuredGraph) -> Vec<usize> {
    (0..configurations(graph).len())
        .step_by(3)
        .take(10)
        .collect()
}

async fn rank(client: &Client, graph: &MeasuredGraph, adapt: Option<Adapt>) -> Ranking {
    let handle = GraphHandle::of(graph);
    let request = RankRequest::new(&handle, configurations(graph))
        .with_scores()
        .adapt(adapt);
    client
        .rank(&request)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", graph.name))
}

fn reasons(ranking: &Ranking) -> Vec<&str> {
    ranking
        .warnings
        .iter()
        .map(|warning| warning.reason.as_str())
        .collect()
}

#[tokio::test]
async fn stored_measurements_adapt_as_sent_ones_do() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for graph in measured_graphs() {
        let (handle, chosen) = (GraphHandle::of(&graph), some(&graph));
        let sent = rank(&client, &graph, Some(adapt(&graph, &chosen))).await;
        let reported = client
            .report_measurements(&handle, &adapt(&graph, &chosen))
            .await
            .unwrap();
        let all = u32::try_from(chosen.len()).unwrap();
        assert_eq!(
            (reported.accepted, reported.known),
            (all, 0),
            "{}",
            graph.name
        );
        let kept = rank(&client, &graph, Some(stored())).await;
        assert_eq!(bits(&kept), bits(&sent), "{}", graph.name);
        let (kept_on, sent_on) = (
            kept.adaptation.as_ref().unwrap(),
            sent.adaptation.as_ref().unwrap(),
        );
        assert_eq!(
            (kept_on.stored_measurements, sent_on.stored_measurements),
            (all, 0)
        );
        assert_eq!(kept_on.measured_configs, sent_on.measured_configs);

        let both = rank(&client, &graph, Some(adapt(&graph, &chosen).use_stored())).await;
        assert_eq!(
            bits(&both),
            bits(&sent),
            "a measurement that was sent too counts once"
        );
        assert_eq!(both.adaptation.unwrap().stored_measurements, 0);
        let half = rank(
            &client,
            &graph,
            Some(adapt(&graph, &chosen[..2]).use_stored()),
        )
        .await;
        assert_eq!(
            (bits(&half), half.adaptation.unwrap().stored_measurements),
            (bits(&sent), all - 2)
        );
    }
}

#[tokio::test]
async fn every_order_of_reports_and_a_restart_give_equal_bits() {
    let (forth_folder, back_folder) = (folder(), folder());
    let (server, forth) = start(forth_folder.path(), &[]).await;
    let (_other, back) = start(back_folder.path(), &[]).await;
    let graphs = measured_graphs();
    for graph in &graphs {
        let (handle, other, chosen) = (GraphHandle::of(graph), GraphHandle::of(graph), some(graph));
        for half in chosen.chunks(5) {
            forth
                .report_measurements(&handle, &adapt(graph, half))
                .await
                .unwrap();
        }
        for &one in chosen.iter().rev() {
            // Twice, as a client that repeats a call does.
            back.report_measurements(&other, &adapt(graph, &[one]))
                .await
                .unwrap();
            back.report_measurements(&other, &adapt(graph, &[one]))
                .await
                .unwrap();
        }
    }
    // Kernels of one structure teach about each other, so rankings are compared once all are reported.
    let mut expected = Vec::new();
    for graph in &graphs {
        let ranking = rank(&forth, graph, Some(stored())).await;
        assert!(ranking.adaptation.as_ref().unwrap().adapted);
        assert_eq!(
            bits(&rank(&back, graph, Some(stored())).await),
            bits(&ranking),
            "{}",
            graph.name
        );
        expected.push(bits(&ranking));
    }
    server.stop().await;
    let (_server, client) = start(forth_folder.path(), &[]).await;
    for (graph, expected) in graphs.iter().zip(expected) {
        assert_eq!(
            bits(&rank(&client, graph, Some(stored())).await),
            expected,
            "{}",
            graph.name
        );
    }
}

#[tokio::test]
async fn targets_are_never_mixed() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let graph = measured_graphs().remove(0);
    client
        .report_measurements(&GraphHandle::of(&graph), &adapt(&graph, &some(&graph)))
        .await
        .unwrap();
    let today = rank(&client, &graph, None).await;
    let other = rank(
        &client,
        &graph,
        Some(Adapt::new("another board").use_stored()),
    )
    .await;
    assert_eq!(other.scores, today.scores);
    assert_eq!(other.adaptation.unwrap().stored_measurements, 0);
}

#[tokio::test]
async fn streams_and_suggestions_use_stored_measurements() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for graph in measured_graphs() {
        let (handle, chosen) = (GraphHandle::of(&graph), some(&graph));
        let sent = adapt(&graph, &chosen);
        client.report_measurements(&handle, &sent).await.unwrap();
        let at_once = rank(&client, &graph, Some(sent.clone())).await;
        let request = StreamRequest::new(&handle).adapt(Some(stored()));
        let mut stream = client.rank_stream(&request).await.unwrap();
        stream.send(configurations(&graph)).await.unwrap();
        let ranking = stream.finish().await.unwrap();
        assert_eq!(
            (&ranking.best, &ranking.log_sd),
            (&at_once.best, &at_once.log_sd),
            "{}",
            graph.name
        );

        let suggest = async |adapt: &Adapt| {
            let request = SuggestRequest::new(&handle, configurations(&graph))
                .adapt(Some(adapt))
                .count(8);
            client.suggest(&request).await.unwrap().suggestions
        };
        let suggested = suggest(&stored()).await;
        assert_eq!(suggested, suggest(&sent).await);
        assert!(
            suggested.iter().all(|each| !chosen.contains(&each.config)),
            "{}",
            graph.name
        );
    }
}

#[tokio::test]
async fn what_was_reported_is_listed_until_it_is_deleted() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let graphs = measured_graphs();
    let mut hashes = Vec::new();
    for graph in &graphs {
        let chosen: Vec<usize> = (0..configurations(graph).len()).take(12).collect();
        let ids = chosen.iter().map(|config| format!("run {config}"));
        let adapt = adapt(graph, &chosen).ids(ids);
        hashes.push(
            client
                .report_measurements(&GraphHandle::of(graph), &adapt)
                .await
                .unwrap()
                .graph_hash,
        );
    }
    let list = async |of: MeasurementsOf<'_>| {
        let (mut all, mut after) = (Vec::new(), Vec::new());
        loop {
            let page = client.list_measurements(of, &after).await.unwrap();
            all.extend(page.graphs);
            after = page.next;
            if after.is_empty() {
                return all;
            }
        }
    };
    let count = |all: &[hlorank_proto::v1::GraphMeasurements]| {
        all.iter().map(|each| each.ids.len()).sum::<usize>()
    };
    let all = list(MeasurementsOf::All).await;
    assert_eq!(all, list(MeasurementsOf::Target(TARGET)).await);
    assert_eq!(count(&all), 12 * graphs.len());
    for (graph, &hash) in graphs.iter().zip(&hashes) {
        let of_graph = list(MeasurementsOf::Graph(TARGET, hash)).await;
        let [kept] = &of_graph[..] else {
            panic!("{of_graph:?}")
        };
        assert_eq!(
            (kept.target.as_str(), &kept.graph_hash[..]),
            (TARGET, &hash.0[..])
        );
        let configs = kept.batch.as_ref().unwrap().configs.as_ref().unwrap();
        let batch = hlorank_graph::EncodedBatch::try_from(configs).unwrap();
        let read = batch
            .read(
                graph.graph.task(),
                graph.graph.configurable(),
                &Limits::default(),
            )
            .unwrap();
        for (place, id) in kept.ids.iter().enumerate() {
            let id = std::str::from_utf8(id).unwrap();
            let number: usize = id.strip_prefix("run ").unwrap().parse().unwrap();
            assert_eq!(
                read.canonical(place),
                configurations(graph).canonical(number)
            );
            let [Measured::Time { seconds, .. }] = outcomes(graph, &[number])[..] else {
                panic!()
            };
            assert_eq!(
                (
                    kept.seconds[place],
                    kept.repeats[place],
                    kept.failures[place]
                ),
                (seconds, 1, 0)
            );
        }
    }
    assert_eq!(
        client.delete_measurements(TARGET, hashes[0]).await.unwrap(),
        12
    );
    assert!(
        list(MeasurementsOf::Graph(TARGET, hashes[0]))
            .await
            .is_empty()
    );
    assert_eq!(
        client.delete_target(TARGET).await.unwrap(),
        12 * (graphs.len() as u64 - 1)
    );
    assert!(list(MeasurementsOf::All).await.is_empty());
}

#[tokio::test]
async fn pages_have_the_size_that_was_asked_for() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let graph = measured_graphs().remove(0);
    let ten = adapt(&graph, &[0; 10]).ids((0..10).map(|id| vec![id]));
    client
        .report_measurements(&GraphHandle::of(&graph), &ten)
        .await
        .unwrap();
    let mut calls = server.cost_model().await;
    let mut request = ListMeasurementsRequest {
        page_size: 4,
        ..ListMeasurementsRequest::default()
    };
    let mut sizes = Vec::new();
    loop {
        let page = calls
            .list_measurements(request.clone())
            .await
            .unwrap()
            .into_inner();
        sizes.push(page.graphs.iter().map(|each| each.ids.len()).sum::<usize>());
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(sizes, [4, 4, 2]);
}

fn refusal(status: &Status) -> (Code, String, String) {
    let fields = status
        .get_details_bad_request()
        .map(|details| details.field_violations);
    let field = fields
        .unwrap_or_default()
        .pop()
        .map(|violation| violation.field);
    (
        status.code(),
        status.get_details_error_info().unwrap().reason,
        field.unwrap_or_default(),
    )
}

/// A report of two tiles of a graph that the server has.
fn report(graph: Digest) -> ReportMeasurementsRequest {
    let mut tiles = TileBatch::default();
    for bound in [4, 8] {
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &[bound],
            input_bounds: &[],
        };
        tiles.push(tile, &Limits::default()).unwrap();
    }
    ReportMeasurementsRequest {
        graph: Some(graph_by_hash(graph.0.to_vec())),
        target: TARGET.to_owned(),
        batch: Some(config_batch(Configurations::Tile(tiles).to_smallest_form())),
        seconds: vec![1.0, 2.0],
        ..ReportMeasurementsRequest::default()
    }
}

async fn tile_graph(client: &Client) -> Digest {
    let graph = measured_graphs()
        .into_iter()
        .find(|graph| graph.graph.task() == Task::Tile)
        .unwrap();
    client
        .put_graph(&GraphHandle::of(&graph))
        .await
        .unwrap()
        .hash
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn impossible_reports_are_refused_with_reason_and_field() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let (mut calls, hash) = (server.cost_model().await, tile_graph(&client).await);
    let layouts = measured_graphs()
        .into_iter()
        .find(|graph| graph.graph.task() == Task::Layout)
        .unwrap();
    let layouts = client
        .put_graph(&GraphHandle::of(&layouts))
        .await
        .unwrap()
        .hash;
    let mut refused =
        async |change: &dyn Fn(&mut ReportMeasurementsRequest), reason: &str, field: &str| {
            let mut request = report(hash);
            change(&mut request);
            let status = calls.report_measurements(request).await.unwrap_err();
            let (code, found, named) = refusal(&status);
            assert_eq!(
                (found.as_str(), named.as_str()),
                (reason, field),
                "{status:?}"
            );
            code
        };
    for seconds in [0.0, -1.0, f64::NAN, 1e300, f64::INFINITY] {
        let code = refused(
            &|report| report.seconds[1] = seconds,
            "VALUE_OUT_OF_RANGE",
            "seconds",
        )
        .await;
        assert_eq!(code, Code::InvalidArgument);
    }
    refused(
        &|report| report.seconds.truncate(1),
        "WRONG_COUNT",
        "seconds",
    )
    .await;
    refused(
        &|report| report.repeats = vec![0, 1],
        "VALUE_OUT_OF_RANGE",
        "repeats",
    )
    .await;
    refused(
        &|report| report.failures = vec![0, 9],
        "VALUE_OUT_OF_RANGE",
        "failures",
    )
    .await;
    refused(
        &|report| report.ids = vec![vec![1; 65].into(), vec![2].into()],
        "VALUE_OUT_OF_RANGE",
        "ids",
    )
    .await;
    refused(
        &|report| report.ids = vec![vec![1].into()],
        "WRONG_COUNT",
        "ids",
    )
    .await;
    refused(&|report| report.target.clear(), "FIELD_MISSING", "target").await;
    refused(
        &|report| report.target = "t".repeat(257),
        "FIELD_INVALID",
        "target",
    )
    .await;
    refused(&|report| report.batch = None, "FIELD_MISSING", "configs").await;
    refused(&|report| report.graph = None, "FIELD_MISSING", "graph").await;
    refused(
        &|report| report.graph = Some(graph_by_hash(layouts.0.to_vec())),
        "GRAPH_TASK_MISMATCH",
        "batch",
    )
    .await;
    let unknown =
        |report: &mut ReportMeasurementsRequest| report.graph = Some(graph_by_hash(vec![7; 32]));
    assert_eq!(
        refused(&unknown, "GRAPH_NOT_CACHED", "").await,
        Code::FailedPrecondition
    );
    let mut tiles = TileBatch::default();
    for bound in [0, 8] {
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &[bound],
            input_bounds: &[],
        };
        tiles.push(tile, &Limits::default()).unwrap();
    }
    let bound_of_0 = config_batch(Configurations::Tile(tiles).to_smallest_form());
    refused(
        &|report| report.batch = Some(bound_of_0.clone()),
        "VALUE_OUT_OF_RANGE",
        "batch",
    )
    .await;

    let ids =
        |report: &mut ReportMeasurementsRequest| report.ids = vec![vec![1].into(), vec![2].into()];
    let mut first = report(hash);
    ids(&mut first);
    server
        .cost_model()
        .await
        .report_measurements(first)
        .await
        .unwrap();
    let changed = |report: &mut ReportMeasurementsRequest| {
        ids(report);
        report.seconds[1] = 3.0;
    };
    assert_eq!(
        refused(&changed, "MEASUREMENT_CHANGED", "ids").await,
        Code::AlreadyExists
    );
    let kept = client
        .list_measurements(MeasurementsOf::All, &[])
        .await
        .unwrap();
    assert_eq!(
        kept.graphs.iter().map(|each| each.ids.len()).sum::<usize>(),
        2,
        "nothing refused was kept"
    );
}

#[tokio::test]
async fn impossible_lists_and_deletions_are_refused_with_their_field() {
    let folder = folder();
    let (server, _client) = start(folder.path(), &[]).await;
    let mut calls = server.cost_model().await;
    let hash = |bytes: usize| vec![7; bytes].into();
    for (request, field) in [
        (
            ListMeasurementsRequest {
                page_size: 10_001,
                ..Default::default()
            },
            "page_size",
        ),
        (
            ListMeasurementsRequest {
                graph_hash: hash(32),
                ..Default::default()
            },
            "target",
        ),
        (
            ListMeasurementsRequest {
                target: "a".to_owned(),
                graph_hash: hash(31),
                ..Default::default()
            },
            "graph_hash",
        ),
    ] {
        let refused = calls.list_measurements(request).await.unwrap_err();
        assert_eq!(
            (refused.code(), refusal(&refused).2.as_str()),
            (Code::InvalidArgument, field)
        );
    }
    let nothing = calls
        .delete_measurements(DeleteMeasurementsRequest::default())
        .await
        .unwrap_err();
    assert_eq!(
        refusal(&nothing),
        (
            Code::InvalidArgument,
            "FIELD_MISSING".to_owned(),
            "target".to_owned()
        )
    );
}

#[tokio::test]
async fn a_server_without_a_store_says_how_to_get_one() {
    let server = TestServer::start().await;
    let (client, mut calls) = (server.client().await, server.cost_model().await);
    let hash = tile_graph(&client).await;
    let delete = DeleteMeasurementsRequest {
        target: TARGET.to_owned(),
        ..Default::default()
    };
    for refused in [
        calls
            .report_measurements(report(hash))
            .await
            .map(drop)
            .unwrap_err(),
        calls
            .list_measurements(ListMeasurementsRequest::default())
            .await
            .map(drop)
            .unwrap_err(),
        calls
            .delete_measurements(delete)
            .await
            .map(drop)
            .unwrap_err(),
    ] {
        assert_eq!(
            refusal(&refused),
            (
                Code::FailedPrecondition,
                "MEASUREMENTS_OFF".to_owned(),
                String::new()
            )
        );
        assert!(refused.message().contains("--measurements"), "{refused:?}");
    }
    let graph = measured_graphs().remove(0);
    let today = rank(&client, &graph, Some(adapt(&graph, &some(&graph)))).await;
    let ranking = rank(
        &client,
        &graph,
        Some(adapt(&graph, &some(&graph)).use_stored()),
    )
    .await;
    assert_eq!(bits(&ranking), bits(&today));
    assert!(reasons(&today).is_empty());
    assert_eq!(reasons(&ranking), ["STORED_MEASUREMENTS_UNUSED"]);
}

#[tokio::test]
async fn a_full_store_refuses_with_its_limit_until_something_is_deleted() {
    let folder = folder();
    let (server, client) = start(folder.path(), &["--max-measurements-bytes=1000"]).await;
    let (mut calls, hash) = (server.cost_model().await, tile_graph(&client).await);
    let mut number = 0.0;
    let refused = loop {
        number += 1.0;
        let request = ReportMeasurementsRequest {
            seconds: vec![number, number],
            ..report(hash)
        };
        if let Err(refused) = calls.report_measurements(request).await {
            break refused;
        }
        assert!(number < 10.0, "it is never full");
    };
    assert_eq!(refusal(&refused).0, Code::ResourceExhausted);
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(
        (info.reason.as_str(), &*info.metadata["limit"]),
        ("MEASUREMENTS_FULL", "--max-measurements-bytes")
    );
    let [found, allowed] =
        ["found", "allowed"].map(|key| info.metadata[key].parse::<u64>().unwrap());
    assert!(
        found > allowed && allowed <= 750,
        "one client has three quarters: {found} of {allowed}"
    );
    assert!(refused.get_details_retry_info().is_none(), "it stays full");
    let scrape = server.scrape().await;
    assert_eq!(
        scrape.value("hlorank_measurements", &[]),
        2.0 * (number - 1.0)
    );
    assert!(scrape.value("hlorank_measurements_bytes", &[]) <= 1000.0);
    assert!(client.delete_target(TARGET).await.unwrap() > 0);
    calls.report_measurements(report(hash)).await.unwrap();
}

#[tokio::test]
async fn failures_are_kept_and_ranked_last() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for graph in measured_graphs() {
        let (handle, chosen) = (GraphHandle::of(&graph), some(&graph));
        let mut measured = outcomes(&graph, &chosen);
        measured[0] = Measured::Failed(MeasurementFailure::Timeout);
        let all =
            Adapt::new(TARGET).measured(&part(configurations(&graph), chosen.clone()), &measured);
        client.report_measurements(&handle, &all).await.unwrap();
        let ranking = rank(&client, &graph, Some(stored())).await;
        assert_eq!(ranking.scores[chosen[0]], f32::MAX, "{}", graph.name);
    }
}

/// Distinct tiles, by number.
fn tiles(numbers: impl Iterator<Item = usize>) -> Configurations {
    let mut tiles = TileBatch::default();
    for number in numbers {
        let number = i64::try_from(number).unwrap();
        let output_bounds = [
            1 + number % 100,
            1 + number / 100 % 100,
            1 + number / 10_000,
        ];
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &output_bounds,
            input_bounds: &[],
        };
        tiles.push(tile, &Limits::default()).unwrap();
    }
    Configurations::Tile(tiles)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_measurements_of_a_graph_take_bounded_memory_and_time() {
    const ALL: usize = 100_000;
    const AT_ONCE: usize = 2_500;
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let graph = measured_graphs()
        .into_iter()
        .find(|graph| graph.graph.task() == Task::Tile)
        .unwrap();
    let handle = GraphHandle::of(&graph);
    rank(&client, &graph, None).await;
    let (before, started) = (resident_bytes(std::process::id()), Instant::now());
    for first in (0..ALL).step_by(AT_ONCE) {
        let numbers = || first..first + AT_ONCE;
        let time = |number: usize| 1e-3 + (number as f64).sin().abs() * 1e-3;
        let measured: Vec<_> = numbers()
            .map(|each| Measured::Time {
                seconds: time(each),
                repeats: 1,
            })
            .collect();
        let adapt = Adapt::new(TARGET).measured(&tiles(numbers()), &measured);
        let reported = client.report_measurements(&handle, &adapt).await.unwrap();
        assert_eq!(reported.accepted as usize, AT_ONCE);
    }
    let (took, grown) = (
        started.elapsed(),
        resident_bytes(std::process::id()).saturating_sub(before),
    );
    println!("{ALL} measurements took {took:?} and {} MiB", grown >> 20);
    assert!(took.as_secs() < 60, "{took:?}");
    assert!(grown < 256 << 20, "{} MiB", grown >> 20);
    assert_eq!(
        server.scrape().await.value("hlorank_measurements", &[]),
        ALL as f64
    );

    let started = Instant::now();
    let ranking = rank(&client, &graph, Some(stored())).await;
    println!("ranking with them took {:?}", started.elapsed());
    let adaptation = ranking.adaptation.as_ref().unwrap();
    assert_eq!(
        (adaptation.stored_measurements, adaptation.measured_configs),
        (2_000, 2_000)
    );
    assert!(adaptation.adapted);
    assert_eq!(
        bits(&rank(&client, &graph, Some(stored())).await),
        bits(&ranking)
    );
}
