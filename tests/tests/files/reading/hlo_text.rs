//! HLO text is read in a time that is bounded, and ranked as the protobuf of the module.

use hlorank_proto::v1::ConfigurableNode;
use hlorank_tests::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// Returns a module as text and as protobuf.
fn module(name: &str) -> (String, Vec<u8>) {
    let file = |ending| fixture(HLO_FIXTURES).join(format!("{name}{ending}"));
    (
        fs::read_to_string(file(".hlo.txt")).unwrap(),
        fs::read(file(".hlo_module.pb")).unwrap(),
    )
}

/// Returns a text of products, each of the last one and of a much earlier one.
fn products(nodes: usize) -> String {
    let mut lines =
        vec!["HloModule m\n\nENTRY e {\n  p.0 = f32[8,8]{1,0} parameter(0)\n".to_owned()];
    lines.extend((1..nodes).map(|node| {
        let (last, other) = (node - 1, node / 2);
        format!("  p.{node} = f32[8,8]{{1,0}} multiply(p.{last}, p.{other}), metadata={{op_name=\"f\"}}\n")
    }));
    lines.concat() + "}\n"
}

/// Returns the time that this thread has used a processor, whatever else runs.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a thread's time is positive")
}

#[test]
fn reading_takes_time_in_proportion_to_the_text() {
    let [small, large] = [5_000, 80_000].map(|nodes| {
        let text = products(nodes);
        let read = || {
            HloModule::read_text(&text, &Limits::default())
                .unwrap()
                .len()
        };
        let times = (0..5).map(|_| {
            let start = processor_time();
            assert_eq!(read(), nodes);
            processor_time().saturating_sub(start)
        });
        times.min().unwrap()
    });
    // Sixteen times the text may take four times longer than linear, for caches.
    assert!(
        large < small * 64,
        "{small:?} for 5,000 nodes, {large:?} for 80,000"
    );
}

/// Returns one layout for each of `choices`, which is repeated over the nodes: 0 is the compiler's default, 1 the ascending
/// order of the output, and 2 that of every tensor.
fn orders(nodes: &[ConfigurableNode], choices: &[Vec<usize>]) -> Configurations {
    let mut builder = LayoutBatchBuilder::new(nodes.len(), Limits::default());
    for choices in choices {
        let entry = |(node, choice): (&ConfigurableNode, &usize)| {
            let ranks = &node.tensor_ranks[..[0, 1, node.tensor_ranks.len()][*choice]];
            let orders = ranks
                .iter()
                .map(|rank| (0..).take(*rank as usize).collect::<Vec<i32>>());
            LayoutEntry::from_tensors(orders).unwrap()
        };
        builder
            .push(
                &nodes
                    .iter()
                    .zip(choices.iter().cycle())
                    .map(entry)
                    .collect::<Vec<_>>(),
            )
            .unwrap();
    }
    Configurations::Layout(builder.build().unwrap())
}

#[tokio::test]
async fn a_graph_that_comes_as_text_is_ranked_as_its_module() {
    let (text, proto) = module("mlp_train.before_opt");
    // Each has its own server, so that neither finds the other's embeddings in the cache.
    let mut answers = Vec::new();
    for graph in [
        GraphHandle::hlo_text(text, Task::Layout, vec![]),
        GraphHandle::hlo_module(proto, Task::Layout, vec![]),
    ] {
        let server = TestServer::start().await;
        let client = server.client().await;
        let cached = client.put_graph(&graph).await.unwrap();
        let layouts = orders(
            &cached.configurable_nodes,
            &[vec![0], vec![0, 1], vec![2, 1, 0]],
        );
        let ranking = client
            .rank(&RankRequest::new(&graph, &layouts).with_scores())
            .await
            .unwrap();
        assert_eq!(graph.hash(), Some(ranking.graph_hash));
        answers.push((
            ranking.graph_hash,
            ranking.scores,
            ranking.best,
            cached.configurable_nodes,
        ));
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].1[0] != answers[0].1[1], "{:?}", answers[0].1);
}

#[tokio::test]
async fn a_stream_begins_with_a_graph_as_text() {
    let (text, proto) = module("cnn_train.before_opt");
    let server = TestServer::start().await;
    let client = server.client().await;
    let [text, module] = [
        GraphHandle::hlo_text(text, Task::Layout, vec![]),
        GraphHandle::hlo_module(proto, Task::Layout, vec![]),
    ];
    let mut stream = client
        .rank_stream(&StreamRequest::new(&text))
        .await
        .unwrap();
    let nodes = client.put_graph(&module).await.unwrap().configurable_nodes;
    let layouts = orders(&nodes, &[vec![0], vec![1, 2]]);
    stream.send(&layouts).await.unwrap();
    let streamed = stream.finish().await.unwrap();
    let ranking = client
        .rank(&RankRequest::new(&module, &layouts))
        .await
        .unwrap();
    assert_eq!(
        (streamed.graph_hash, streamed.best),
        (ranking.graph_hash, ranking.best)
    );
}
