//! HLO text is read in a time that is bounded, and ranked as the protobuf of the module.

use hlorank_proto::v1::ConfigurableNode;
use hlorank_tests::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// Returns a text of products, each of the last one and of a much earlier one.
fn products(nodes: usize) -> String {
    let products = (1..nodes).map(|node| {
        let (last, other) = (node - 1, node / 2);
        format!("  p.{node} = f32[8,8]{{1,0}} multiply(p.{last}, p.{other}), metadata={{op_name=\"f\"}}\n")
    });
    let products: String = products.collect();
    format!("HloModule m\n\nENTRY e {{\n  p.0 = f32[8,8]{{1,0}} parameter(0)\n{products}}}\n")
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
        let times = (0..5).map(|_| {
            let start = processor_time();
            let module = HloModule::read_text(&text, &Limits::default()).unwrap();
            assert_eq!(module.len(), nodes);
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

/// Returns two layouts: the compiler's default, and the ascending order of every tensor.
fn orders(nodes: &[ConfigurableNode]) -> Configurations {
    let ascending = |node: &ConfigurableNode| {
        let ranks = node.tensor_ranks.iter();
        let orders = ranks.map(|rank| (0..).take(*rank as usize).collect::<Vec<i32>>());
        LayoutEntry::from_tensors(orders).unwrap()
    };
    let ascending: Vec<LayoutEntry> = nodes.iter().map(ascending).collect();
    let mut builder = LayoutBatchBuilder::new(nodes.len(), Limits::default());
    let default = vec![LayoutEntry::default(); nodes.len()];
    builder.push(&default).unwrap();
    builder.push(&ascending).unwrap();
    Configurations::Layout(builder.build().unwrap())
}

#[tokio::test]
async fn a_graph_that_comes_as_text_is_ranked_as_its_module() {
    let file = |ending| fixture(HLO_FIXTURES).join(format!("cnn_train.before_opt{ending}"));
    let text = fs::read_to_string(file(".hlo.txt")).unwrap();
    let module = fs::read(file(".hlo_module.pb")).unwrap();
    let [text, module] = [
        GraphHandle::hlo_text(text, Task::Layout, vec![]),
        GraphHandle::hlo_module(module, Task::Layout, vec![]),
    ];
    // Each has its own server, so that neither finds the other's embeddings in the cache.
    let (server, other) = (TestServer::start().await, TestServer::start().await);
    let (client, other_client) = (server.client().await, other.client().await);
    let nodes = client.put_graph(&text).await.unwrap().configurable_nodes;
    let cached = other_client.put_graph(&module).await.unwrap();
    assert_eq!(nodes, cached.configurable_nodes);
    let layouts = orders(&nodes);
    let request = StreamRequest::new(&text);
    let mut stream = client.rank_stream(&request).await.unwrap();
    stream.send(&layouts).await.unwrap();
    let streamed = stream.finish().await.unwrap();
    let request = RankRequest::new(&module, &layouts);
    let ranking = other_client.rank(&request).await.unwrap();
    assert_eq!(
        (streamed.graph_hash, streamed.best),
        (ranking.graph_hash, ranking.best)
    );
}
