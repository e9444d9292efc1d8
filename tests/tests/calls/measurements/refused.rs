//! Reports, lists and deletions that are impossible, or that a server cannot keep, are refused.

use hlorank_proto::v1::DeleteMeasurementsRequest;
use hlorank_tests::prelude::*;

use super::stored::{adapt, rank, reasons, some};
use crate::measurements::{TARGET, bits, folder, start};

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
    let (server, client) = start(folder.path(), &["--max-measurements-bytes=4000"]).await;
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
        assert!(number < 20.0, "it is never full");
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
        found > allowed && allowed <= 3000,
        "one client has three quarters: {found} of {allowed}"
    );
    assert!(refused.get_details_retry_info().is_none(), "it stays full");
    let scrape = server.scrape().await;
    assert_eq!(
        scrape.value("hlorank_measurements", &[]),
        2.0 * (number - 1.0)
    );
    assert!(scrape.value("hlorank_measurements_bytes", &[]) <= 4000.0);
    assert!(client.delete_target(TARGET).await.unwrap() > 0);
    calls.report_measurements(report(hash)).await.unwrap();
}
