//! Real graphs with real configurations are ranked, in every form in which they can be sent.

use hlorank_server::engine::rank;
use hlorank_tests::prelude::*;

async fn scores(client: &Client, graph: &MeasuredGraph) -> Vec<f32> {
    rank_measured(client, graph, None).await.scores
}

#[tokio::test]
async fn every_measured_graph_is_ranked() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for measured in measured_graphs() {
        let name = &measured.name;
        let ranking = rank_measured(&client, &measured, None).await;
        let best: Vec<u32> = ranking
            .best
            .iter()
            .map(|ranked| u32::try_from(ranked.config).unwrap())
            .collect();
        assert_eq!(best, rank(&ranking.scores, 0), "{name}");
        let first = ranking.scores[0];
        assert!(
            ranking.scores.iter().any(|score| *score != first),
            "{name} has one score"
        );
        assert_eq!(ranking.graph_hash, measured.graph.hash());
        assert_eq!(ranking.reuse.configs, ranking.scores.len() as u64);
        assert!(ranking.timings.total >= ranking.timings.encode);

        let features = GraphHandle::features(&measured.graph);
        let request = RankRequest::new(&features, configurations(&measured));
        let top = client.rank(&request.top(5).with_scores()).await.unwrap();
        assert_eq!(top.best, ranking.best[..5], "{name} as features");
        assert_eq!(top.scores, ranking.scores, "{name} as features");
        assert_eq!(top.graph_hash, ranking.graph_hash, "{name} as features");
    }
}

#[tokio::test]
async fn each_configuration_alone_has_the_score_it_has_in_the_batch() {
    // Without a cache, each configuration is evaluated.
    let server = TestServer::start_with(&["--embedding-cache-bytes=0"]).await;
    let client = server.client().await;
    for measured in measured_graphs() {
        let graph = GraphHandle::from_measured(&measured);
        let mut alone = Vec::new();
        for config in 0..configurations(&measured).len() {
            let one = part(configurations(&measured), [config]);
            let request = RankRequest::new(&graph, &one).with_scores();
            alone.extend(client.rank(&request).await.unwrap().scores);
        }
        assert_eq!(scores(&client, &measured).await, alone, "{}", measured.name);
    }
}

#[tokio::test]
async fn every_form_of_the_configurations_has_the_same_scores() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for measured in measured_graphs() {
        let cached = client
            .put_graph(&GraphHandle::from_measured(&measured))
            .await
            .unwrap();
        let nodes = cached.configurable_nodes.iter().map(|node| node.node);
        let configurable: Vec<u32> = nodes.collect();
        assert_eq!(configurable, measured.graph.configurable());
        let expected = scores(&client, &measured).await;
        for form in forms(configurations(&measured), &configurable) {
            let graph = graph_by_hash(cached.hash.0.to_vec());
            let answer = server.rank(rank_request(graph, form).with_scores()).await;
            let answer = answer.unwrap_or_else(|status| panic!("{status}"));
            assert_eq!(answer.scores, expected, "{}", measured.name);
            assert_eq!(answer.ranking, rank(&expected, 0), "{}", measured.name);
        }
    }
}

#[tokio::test]
async fn layouts_and_kernels_of_alexnet_on_a_tpu_are_ranked() {
    let files = ["alexnet_layout.npz", "alexnet_tile_kernels.pb"];
    let [Some(layouts), Some(kernels)] = files.map(|file| shared(&format!("data/tpu/{file}")))
    else {
        return;
    };
    let server = TestServer::start().await;
    let client = server.client().await;
    let kernels = read_graphs(&kernels);
    assert_eq!(kernels.len(), 15);
    for kernel in kernels {
        let scores = scores(&client, &kernel).await;
        assert_eq!(scores.len(), configurations(&kernel).len());
    }
    let layouts = read_graphs(&layouts).remove(0);
    let scores = scores(&client, &layouts).await;
    assert_eq!(scores.len(), 47_712);
    let Configurations::Layout(batch) = configurations(&layouts) else {
        panic!("layouts")
    };
    // Equal configurations have equal scores.
    let mut seen = HashMap::new();
    for (config, score) in scores.iter().enumerate() {
        assert_eq!(seen.entry(batch.row(config)).or_insert(score), &score);
    }
    assert_eq!(seen.len(), 29_905);
}
