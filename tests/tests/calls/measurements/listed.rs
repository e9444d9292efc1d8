//! Reported measurements are listed, page by page, until they are deleted.

use super::*;

#[tokio::test]
async fn what_was_reported_is_listed_in_pages_of_the_size_asked_for_until_it_is_deleted() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let graphs = measured_graphs();
    let mut hashes = Vec::new();
    for graph in &graphs {
        let chosen: Vec<usize> = (0..configurations(graph).len()).take(12).collect();
        let ids = chosen.iter().map(|config| format!("run {config}"));
        let adapt = adapt(TARGET, graph, &chosen).ids(ids);
        let handle = GraphHandle::from_measured(graph);
        let reported = client.report_measurements(&handle, &adapt).await.unwrap();
        hashes.push(reported.graph_hash);
    }
    let of_target = || ListMeasurementsRequest {
        target: TARGET.to_owned(),
        ..ListMeasurementsRequest::default()
    };
    let of_graph = |hash: Digest| ListMeasurementsRequest {
        graph_hash: hash.0.to_vec().into(),
        page_size: 5,
        ..of_target()
    };
    let all = kept(&client).await;
    assert_eq!(all, listed(&client, of_target()).await);
    let ids = all.iter().map(|part| part.ids.len());
    assert_eq!(ids.sum::<usize>(), 12 * graphs.len());
    for (graph, &hash) in graphs.iter().zip(&hashes) {
        let pages = listed(&client, of_graph(hash)).await;
        let sizes: Vec<usize> = pages.iter().map(|page| page.ids.len()).collect();
        assert_eq!(sizes, [5, 5, 2], "{}", graph.name);
        let seconds = seconds_of(graph);
        for page in pages {
            assert_eq!(page.target, TARGET);
            assert_eq!(page.graph_hash, hash.0[..]);
            let configs = page.batch.as_ref().unwrap().configs.as_ref().unwrap();
            let batch = hlorank_graph::EncodedBatch::try_from(configs).unwrap();
            let slots = graph.graph.configurable();
            let batch = batch.read(graph.graph.task(), slots, &Limits::default());
            let batch = batch.unwrap();
            for (place, id) in page.ids.iter().enumerate() {
                let id = std::str::from_utf8(id).unwrap();
                let number: usize = id.strip_prefix("run ").unwrap().parse().unwrap();
                let expected = configurations(graph).canonical(number);
                assert_eq!(batch.canonical(place), expected, "{id}");
                assert_eq!(page.seconds[place], seconds[number], "{id}");
                assert_eq!((page.repeats[place], page.failures[place]), (1, 0), "{id}");
            }
        }
    }

    let delete = async |graph| client.delete_measurements(&deletion(TARGET, graph)).await;
    assert_eq!(delete(Some(hashes[0])).await.unwrap(), 12);
    assert_eq!(listed(&client, of_graph(hashes[0])).await, []);
    let rest = 12 * (graphs.len() as u64 - 1);
    assert_eq!(delete(None).await.unwrap(), rest);
    assert_eq!(kept(&client).await, []);
}
