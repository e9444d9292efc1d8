//! A model that was trained on features padded with −1 gets them, or says why it cannot.

use hlorank_client::{GraphHandle, RankRequest};
use hlorank_graph::{Configurations, Graph, GraphArrays, Limits, Pad};
use hlorank_tests::{Artifacts, TestServer, configurations, fixture, read_graphs};
use tonic::Code;

/// A tile model of each kind.
const MODELS: [&str; 2] = ["tile-xla-cpu", "tile-whole-graph"];

/// Models that say that they were trained with −1.
fn models_padded_with_minus_one() -> Artifacts {
    let models = Artifacts::copy();
    for model in MODELS {
        for version in models.versions(model) {
            models.edit_manifest(&version, |manifest| manifest["pad_value"] = (-1).into());
        }
    }
    models
}

/// A graph whose features came padded with 0, so that lengths are lost.
fn without_lengths(graph: &Graph) -> Graph {
    let (opcodes, edges) = (graph.opcodes().to_vec(), graph.edges().to_vec());
    let features = graph.raw_features().to_vec();
    let arrays = GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &Limits::default()).unwrap();
    Graph::new(graph.task(), arrays, graph.configurable().to_vec()).unwrap()
}

fn request<'a>(graph: &'a GraphHandle, configurations: &Configurations, model: &str) -> RankRequest<'a> {
    RankRequest::new(graph, configurations).model(Some(model.parse().unwrap())).with_scores()
}

#[tokio::test]
async fn a_model_padded_with_minus_one_needs_lengths() {
    let padded = TestServer::start_with(&[&models_padded_with_minus_one().flag()]).await;
    let shipped = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let measured = read_graphs(&fixture("measured/tile_kernels.pb")).remove(0);
    let configurations = configurations(&measured);
    for model in MODELS {
        let mut scores = Vec::new();
        for server in [&padded, &shipped] {
            let graph = GraphHandle::of(&measured);
            scores.push(
                server.client().await.rank(&request(&graph, configurations, model)).await.unwrap().scores,
            );
        }
        assert_ne!(scores[0], scores[1], "{model} sees the pad");

        let graph = GraphHandle::features(&without_lengths(&measured.graph));
        let error = padded.client().await.rank(&request(&graph, configurations, model)).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!((refusal.code(), refusal.reason()), (Code::FailedPrecondition, Some("PAD_UNKNOWN")));
        let message = refusal.message();
        assert!(message.contains(model) && message.contains("pad_value -1"), "{message}");
    }
}
