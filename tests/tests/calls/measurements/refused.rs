//! Reports, lists and deletions that are impossible, or that a server cannot keep, are refused.

use hlorank_proto::v1::DeleteMeasurementsRequest;
use hlorank_tests::prelude::*;

use crate::measurements::{TARGET, all_bits, folder, start};

fn refusal(status: &Status) -> (Code, String, String) {
    let fields = status
        .get_details_bad_request()
        .map(|details| details.field_violations);
    let field = fields
        .unwrap_or_default()
        .pop()
        .map(|violation| violation.field);
    (status.code(), reason(status), field.unwrap_or_default())
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
    let graph = measured_graph_of(Task::Tile);
    client
        .put_graph(&GraphHandle::of(&graph))
        .await
        .unwrap()
        .hash
}

type Change<'a> = &'a dyn Fn(&mut ReportMeasurementsRequest);

#[tokio::test]
async fn impossible_reports_are_refused_with_reason_and_field() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let (mut calls, hash) = (server.cost_model().await, tile_graph(&client).await);
    let layouts = measured_graph_of(Task::Layout);
    let layouts = client
        .put_graph(&GraphHandle::of(&layouts))
        .await
        .unwrap()
        .hash;
    let mut bound_of_0 = TileBatch::default();
    for bound in [0, 8] {
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &[bound],
            input_bounds: &[],
        };
        bound_of_0.push(tile, &Limits::default()).unwrap();
    }
    let bound_of_0 = config_batch(Configurations::Tile(bound_of_0).to_smallest_form());
    let ids = vec![vec![1].into(), vec![2].into()];
    let first = ReportMeasurementsRequest {
        ids: ids.clone(),
        ..report(hash)
    };
    calls.report_measurements(first).await.unwrap();

    let wrong = Code::InvalidArgument;
    let cases: &[(Change, Code, &str, &str)] = &[
        (
            &|report| report.seconds[1] = 0.0,
            wrong,
            "VALUE_OUT_OF_RANGE",
            "seconds",
        ),
        (
            &|report| report.seconds[1] = -1.0,
            wrong,
            "VALUE_OUT_OF_RANGE",
            "seconds",
        ),
        (
            &|report| report.seconds[1] = f64::NAN,
            wrong,
            "VALUE_OUT_OF_RANGE",
            "seconds",
        ),
        (
            &|report| report.seconds[1] = 1e300,
            wrong,
            "VALUE_OUT_OF_RANGE",
            "seconds",
        ),
        (
            &|report| report.seconds[1] = f64::INFINITY,
            wrong,
            "VALUE_OUT_OF_RANGE",
            "seconds",
        ),
        (
            &|report| report.seconds.truncate(1),
            wrong,
            "WRONG_COUNT",
            "seconds",
        ),
        (
            &|report| report.repeats = vec![0, 1],
            wrong,
            "VALUE_OUT_OF_RANGE",
            "repeats",
        ),
        (
            &|report| report.failures = vec![0, 9],
            wrong,
            "VALUE_OUT_OF_RANGE",
            "failures",
        ),
        (
            &|report| report.ids = vec![vec![1; 65].into(), vec![2].into()],
            wrong,
            "VALUE_OUT_OF_RANGE",
            "ids",
        ),
        (
            &|report| report.ids = vec![vec![1].into()],
            wrong,
            "WRONG_COUNT",
            "ids",
        ),
        (
            &|report| report.target.clear(),
            wrong,
            "FIELD_MISSING",
            "target",
        ),
        (
            &|report| report.target = "t".repeat(257),
            wrong,
            "FIELD_INVALID",
            "target",
        ),
        (
            &|report| report.batch = None,
            wrong,
            "FIELD_MISSING",
            "configs",
        ),
        (
            &|report| report.graph = None,
            wrong,
            "FIELD_MISSING",
            "graph",
        ),
        (
            &|report| report.graph = Some(graph_by_hash(layouts.0.to_vec())),
            wrong,
            "GRAPH_TASK_MISMATCH",
            "batch",
        ),
        (
            &|report| report.graph = Some(graph_by_hash(vec![7; 32])),
            Code::FailedPrecondition,
            "GRAPH_NOT_CACHED",
            "",
        ),
        (
            &|report| report.batch = Some(bound_of_0.clone()),
            wrong,
            "VALUE_OUT_OF_RANGE",
            "batch",
        ),
        (
            &|report| (report.ids, report.seconds[1]) = (ids.clone(), 3.0),
            Code::AlreadyExists,
            "MEASUREMENT_CHANGED",
            "ids",
        ),
    ];
    for (change, code, reason, field) in cases {
        let mut request = report(hash);
        change(&mut request);
        let status = calls.report_measurements(request).await.unwrap_err();
        assert_eq!(
            refusal(&status),
            (*code, (*reason).to_owned(), (*field).to_owned()),
            "{status:?}"
        );
    }
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
        says!(refused.message(), "--measurements");
    }
    let graph = measured_graphs().remove(0);
    let today = rank_measured(
        &client,
        &graph,
        Some(adapt(TARGET, &graph, &some_of(&graph))),
    )
    .await;
    let ranking = rank_measured(
        &client,
        &graph,
        Some(adapt(TARGET, &graph, &some_of(&graph)).use_stored()),
    )
    .await;
    assert_eq!(all_bits(&ranking), all_bits(&today));
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
    assert!(client.delete(Deletion::Target(TARGET)).await.unwrap() > 0);
    calls.report_measurements(report(hash)).await.unwrap();
}
