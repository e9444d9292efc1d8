use fastrand::Rng;
use hlorank_graph::Graph;
use hlorank_tests::prelude::*;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{Subject, assert_near};

#[test]
fn scores_equal_the_naive_evaluation_in_every_form_chunk_and_stream() {
    let runtime = Runtime::new().unwrap();
    let subject = runtime.block_on(Subject::new());
    let cases = (
        1_usize..9,
        vec(0_usize..6, 1..23),
        1_usize..12,
        any::<u64>(),
    );
    let mut runner = TestRunner::new(Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    });
    let checked = runner.run(&cases, |(nodes, chosen, at_once, seed)| {
        let mut random = Rng::with_seed(seed);
        let graph = Loops::graph(nodes, &mut random);
        // Configurations are often equal, within a chunk and across chunks.
        let batch = Loops::batch(nodes, 6, &mut random).select(&chosen);
        let expected = subject.model.scores(&graph, &batch);
        runtime.block_on(async {
            let mut unary = Vec::new();
            for form in forms(&Configurations::FeatureSet(batch.clone()), &[]) {
                let message = graph_of(Source::FeatureGraph(graph.to_message()));
                let request = rank_request(message, form).with_scores();
                let answer = subject.server.rank(request).await.unwrap();
                assert_near(&answer.scores, &expected);
                let reuse = answer.reuse.unwrap();
                assert_eq!(reuse.configs, batch.len() as u64);
                assert_eq!(reuse.rows_evaluated, reuse.distinct_configs);
                unary.push(answer.scores);
            }
            assert_eq!(unary.len(), 2);
            assert_eq!(unary[0], unary[1], "both forms");
            let handle = GraphHandle::feature_graph(&graph);
            let request = StreamRequest::new(&handle);
            let mut stream = subject.client.rank_stream(&request).await.unwrap();
            let mut scores = Vec::new();
            for some in (0..batch.len()).collect::<Vec<_>>().chunks(at_once) {
                let part = Configurations::FeatureSet(batch.select(some));
                stream.send(&part).await.unwrap();
                scores.extend(stream.scores().await.unwrap().unwrap().scores);
            }
            stream.finish().await.unwrap();
            assert_eq!(scores, unary[0], "a stream");
        });
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(subject.server.stop());
}

#[tokio::test]
async fn a_graph_is_put_once_and_ranked_by_its_hash() {
    let subject = Subject::new().await;
    let mut random = Rng::with_seed(1);
    let graph = Loops::graph(7, &mut random);
    let batch = Loops::batch(7, 20, &mut random);
    let handle = GraphHandle::feature_graph(&graph);
    let put = subject.client.put_graph(&handle).await.unwrap();
    assert_eq!(put.hash, Graph::of_features(graph.clone()).hash());
    let summary = put.summary;
    assert_eq!(
        (summary.nodes, summary.edges, summary.configurable_nodes),
        (7, 6, 7)
    );
    assert_eq!((summary.segments, put.configurable_nodes.len()), (0, 0));
    let configurations = Configurations::FeatureSet(batch.clone());
    let request = RankRequest::new(&handle, &configurations).with_scores();
    // There is time for all.
    let ranking = subject.client.rank(&request.allow_partial()).await.unwrap();
    assert_near(&ranking.scores, &subject.model.scores(&graph, &batch));
    assert_eq!(ranking.model.name, "loops-sum");
}

#[tokio::test]
async fn many_callers_get_the_answer_of_one() {
    let subject = Subject::new().await;
    let mut random = Rng::with_seed(3);
    let graph = Loops::graph(9, &mut random);
    let batch = Loops::batch(9, 100, &mut random);
    let first = subject.rank(&graph, &batch).await.scores;
    let calls = (0..16).map(|_| subject.rank(&graph, &batch));
    for ranking in futures::future::join_all(calls).await {
        assert_eq!(ranking.scores, first);
    }
    let part: Vec<usize> = (20..60).collect();
    let some = subject.rank(&graph, &batch.select(&part)).await;
    assert_eq!(some.scores, first[20..60]);
}
