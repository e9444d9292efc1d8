//! Reported measurements are listed, page by page, until they are deleted.

use hlorank_proto::v1::GraphMeasurements;
use hlorank_tests::prelude::*;

use crate::measurements::{TARGET, folder, listed, of_target, start};

#[tokio::test]
async fn what_was_reported_is_listed_until_it_is_deleted() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let graphs = measured_graphs();
    let mut hashes = Vec::new();
    for graph in &graphs {
        let chosen: Vec<usize> = (0..configurations(graph).len()).take(12).collect();
        let ids = chosen.iter().map(|config| format!("run {config}"));
        let adapt = adapt(TARGET, graph, &chosen).ids(ids);
        hashes.push(
            client
                .report_measurements(&GraphHandle::from_measured(graph), &adapt)
                .await
                .unwrap()
                .graph_hash,
        );
    }
    let list = async |of| listed(&client, of).await;
    let of_graph = |hash: Digest| ListMeasurementsRequest {
        graph_hash: hash.0.to_vec().into(),
        ..of_target()
    };
    let count = |all: &[GraphMeasurements]| all.iter().map(|each| each.ids.len()).sum::<usize>();
    let all = list(ListMeasurementsRequest::default()).await;
    assert_eq!(all, list(of_target()).await);
    assert_eq!(count(&all), 12 * graphs.len());
    for (graph, &hash) in graphs.iter().zip(&hashes) {
        let listed = list(of_graph(hash)).await;
        let [kept] = &listed[..] else {
            panic!("{listed:?}")
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
            let [MeasuredOutcome::Time { seconds, .. }] = outcomes(graph, &[number])[..] else {
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
        client
            .delete_measurements(&deletion(TARGET, Some(hashes[0])))
            .await
            .unwrap(),
        12
    );
    assert!(list(of_graph(hashes[0])).await.is_empty());
    assert_eq!(
        client
            .delete_measurements(&deletion(TARGET, None))
            .await
            .unwrap(),
        12 * (graphs.len() as u64 - 1)
    );
    assert!(list(ListMeasurementsRequest::default()).await.is_empty());
}

#[tokio::test]
async fn pages_have_the_size_that_was_asked_for() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let graph = measured_graphs().remove(0);
    let ten = adapt(TARGET, &graph, &[0; 10]).ids((0..10).map(|id| vec![id]));
    client
        .report_measurements(&GraphHandle::from_measured(&graph), &ten)
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
