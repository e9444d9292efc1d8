//! A graph is sent once, and then by hash.

use hlorank_graph::GraphSource;
use hlorank_tests::prelude::*;

use crate::client::replica::calls;

#[tokio::test]
async fn a_graph_that_was_ranked_or_put_goes_by_hash() {
    let (server, graph) = (TestServer::start().await, measured_graph_of(Task::Layout));
    let GraphSource::HloModule(module) = &graph.source else {
        panic!("{} has no module", graph.name)
    };
    // Messages have room for configurations and a hash, but not for the graph.
    let narrow = Connection {
        message_bytes: module.len(),
        ..Connection::default()
    };
    let (client, narrow) = (server.client().await, server.client_with(narrow).await);
    let [ranked, put] = [(); 2].map(|()| GraphHandle::from_measured(&graph));
    let request = |handle| RankRequest::new(handle, configurations(&graph)).top(2);
    let unsent = narrow.rank(&request(&ranked)).await.unwrap_err();
    assert!(
        matches!(unsent, ClientError::RequestTooLong { .. }),
        "{unsent}"
    );
    let limit = format!("a message may have at most {}", module.len());
    says!(unsent.to_string(), limit);
    assert_eq!(calls(&server, "RankConfigs").await, 0.0);

    let sent = client.rank(&request(&ranked)).await.unwrap();
    let cached = client.put_graph(&put).await.unwrap();
    assert_eq!(cached.hash, graph.graph.hash());
    for handle in [&ranked, &put] {
        assert_eq!(handle.hash(), Some(cached.hash));
        let ranking = narrow.rank(&request(handle)).await.unwrap();
        assert_eq!(ranking.best, sent.best);
    }
}
