//! Reports that a server cannot keep.

use hlorank_tests::prelude::*;

use crate::measurements::{TARGET, all_bits, folder, start};

/// A report of two tiles of a graph that the server has.
fn report(graph: Digest) -> ReportMeasurementsRequest {
    ReportMeasurementsRequest {
        graph: Some(graph_by_hash(graph.0.to_vec())),
        target: TARGET.to_owned(),
        batch: Some(config_batch(packed_tiles(&tiles(&[[4], [8]])))),
        seconds: vec![1.0, 2.0],
        ..ReportMeasurementsRequest::default()
    }
}

async fn tile_graph(client: &Client) -> Digest {
    let graph = measured_graph_of(Task::Tile);
    client
        .put_graph(&GraphHandle::from_measured(&graph))
        .await
        .unwrap()
        .hash
}

#[tokio::test]
async fn nothing_of_a_refused_report_is_kept() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let (mut calls, hash) = (server.cost_model().await, tile_graph(&client).await);
    let ids = vec![vec![1].into(), vec![2].into()];
    let first = ReportMeasurementsRequest {
        ids,
        ..report(hash)
    };
    calls.report_measurements(first.clone()).await.unwrap();
    let with_new_and_changed = ReportMeasurementsRequest {
        ids: vec![vec![3].into(), vec![2].into()],
        seconds: vec![1.0, 3.0],
        ..first
    };
    let status = calls
        .report_measurements(with_new_and_changed)
        .await
        .unwrap_err();
    assert_eq!(reason(&status), "MEASUREMENT_CHANGED");
    let kept = client
        .list_measurements(&ListMeasurementsRequest::default())
        .await
        .unwrap();
    let ids = kept.graphs.iter().map(|each| each.ids.len());
    assert_eq!(ids.sum::<usize>(), 2);
}

#[tokio::test]
async fn a_server_without_a_store_ranks_and_warns() {
    let server = TestServer::start().await;
    let client = server.client().await;
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
    assert_eq!(refused.code(), Code::ResourceExhausted);
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
    assert!(
        client
            .delete_measurements(&deletion(TARGET, None))
            .await
            .unwrap()
            > 0
    );
    calls.report_measurements(report(hash)).await.unwrap();
}
