//! Real graphs with real configurations are ranked, in every form in which they can be sent.

use hlorank_server::engine::rank;
use hlorank_tests::prelude::*;

async fn scores(
    server: &TestServer,
    graph: &GraphHandle,
    configurations: &Configurations,
) -> Vec<f32> {
    let client = server.client().await;
    let ranking = client
        .rank(&RankRequest::new(graph, configurations).with_scores())
        .await;
    ranking.unwrap_or_else(|error| panic!("{error}")).scores
}

#[tokio::test]
async fn every_measured_graph_is_ranked() {
    let server = TestServer::start().await;
    for measured in measured_graphs() {
        let graph = GraphHandle::from_measured(&measured);
        let request = RankRequest::new(&graph, configurations(&measured)).with_scores();
        let ranking = server.client().await.rank(&request).await.unwrap();
        let best: Vec<u32> = ranking
            .best
            .iter()
            .map(|ranked| u32::try_from(ranked.config).unwrap())
            .collect();
        assert_eq!(best, rank(&ranking.scores, 0), "{}", measured.name);
        assert!(
            ranking
                .scores
                .iter()
                .any(|score| *score != ranking.scores[0]),
            "{} has one score",
            measured.name
        );
        assert_eq!(ranking.graph_hash, measured.graph.hash());
        assert_eq!(ranking.reuse.configs, ranking.scores.len() as u64);
        assert!(ranking.timings.total >= ranking.timings.encode);
    }
}

#[tokio::test]
async fn top_k_is_the_start_of_the_whole_ranking() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for measured in measured_graphs() {
        let graph = GraphHandle::from_measured(&measured);
        let all = client
            .rank(&RankRequest::new(&graph, configurations(&measured)))
            .await
            .unwrap();
        let top = client
            .rank(&RankRequest::new(&graph, configurations(&measured)).top(5))
            .await
            .unwrap();
        assert_eq!(top.best, all.best[..5], "{}", measured.name);
        assert!(top.scores.is_empty());
    }
}

#[tokio::test]
async fn each_configuration_alone_has_the_score_it_has_in_the_batch() {
    // Without a cache, each configuration is evaluated.
    let server = TestServer::start_with(&["--embedding-cache-bytes=0"]).await;
    for measured in measured_graphs() {
        let graph = GraphHandle::from_measured(&measured);
        let together = scores(&server, &graph, configurations(&measured)).await;
        let mut alone = Vec::new();
        for config in 0..together.len() {
            alone.extend(scores(&server, &graph, &part(configurations(&measured), [config])).await);
        }
        assert_eq!(together, alone, "{}", measured.name);
    }
}

async fn rank_form(server: &TestServer, graph: Graph, configs: Configs) -> RankConfigsResponse {
    let request = rank_request(graph, configs).with_scores();
    let answer = server.cost_model().await.rank_configs(request).await;
    answer
        .unwrap_or_else(|status| panic!("{status}"))
        .into_inner()
}

#[tokio::test]
async fn every_form_of_the_configurations_has_the_same_scores() {
    let server = TestServer::start().await;
    for measured in measured_graphs() {
        let client = server.client().await;
        let cached = client
            .put_graph(&GraphHandle::from_measured(&measured))
            .await
            .unwrap();
        let configurable: Vec<u32> = cached
            .configurable_nodes
            .iter()
            .map(|node| node.node)
            .collect();
        assert_eq!(configurable, measured.graph.configurable());
        let graph = graph_by_hash(cached.hash.0.to_vec());
        let mut answers = Vec::new();
        for form in forms(configurations(&measured), &configurable) {
            answers.push(rank_form(&server, graph.clone(), form).await);
        }
        for answer in &answers[1..] {
            assert_eq!(
                (&answer.scores, &answer.ranking),
                (&answers[0].scores, &answers[0].ranking),
                "{}",
                measured.name
            );
        }
    }
}

#[tokio::test]
async fn a_graph_as_features_is_the_same_graph() {
    let server = TestServer::start().await;
    for measured in measured_graphs() {
        let as_module = scores(
            &server,
            &GraphHandle::from_measured(&measured),
            configurations(&measured),
        )
        .await;
        let features = GraphHandle::features(&measured.graph);
        let as_features = scores(&server, &features, configurations(&measured)).await;
        assert_eq!(as_module, as_features, "{}", measured.name);
        assert_eq!(features.hash(), Some(measured.graph.hash()));
    }
}

#[tokio::test]
async fn alexnet_on_a_tpu_is_ranked() {
    let Some(path) = shared("data/tpu/alexnet_layout.npz") else {
        return;
    };
    let server = TestServer::start().await;
    let measured = read_graphs(&path).remove(0);
    let scores = scores(
        &server,
        &GraphHandle::from_measured(&measured),
        configurations(&measured),
    )
    .await;
    assert_eq!(scores.len(), 47_712);
    let Configurations::Layout(batch) = configurations(&measured) else {
        panic!("layouts")
    };
    assert_equal_configurations_score_equal(batch, &scores);
}

fn assert_equal_configurations_score_equal(batch: &LayoutBatch, scores: &[f32]) {
    let mut seen = std::collections::HashMap::new();
    for (config, score) in scores.iter().enumerate() {
        assert_eq!(seen.entry(batch.row(config)).or_insert(score), &score);
    }
    assert_eq!(seen.len(), 29_905);
}

#[tokio::test]
async fn every_alexnet_kernel_on_a_tpu_is_ranked() {
    let Some(path) = shared("data/tpu/alexnet_tile_kernels.pb") else {
        return;
    };
    let server = TestServer::start().await;
    let kernels = read_graphs(&path);
    assert_eq!(kernels.len(), 15);
    for measured in kernels {
        let scores = scores(
            &server,
            &GraphHandle::from_measured(&measured),
            configurations(&measured),
        )
        .await;
        assert_eq!(scores.len(), measured.measurements.unwrap().run_times.len());
    }
}
