//! A call says what its configurations are for, and the model that was trained for it answers. No model answers for another
//! compiler without a warning, and what is unlike the training data is not trusted.

use hlorank_client::ModelReference;
use hlorank_tests::prelude::*;

/// The default for tiles, which was trained for IREE; [`TILE_MODEL`] for XLA.
const IREE_MODEL: &str = "tile-iree-cpu";

/// Kernels with tiles of XLA.
fn kernels() -> Vec<MeasuredGraph> {
    read_graphs(&fixture("measured/tile_kernels.pb"))
}

/// A server that has both models, of which no operator chose one.
async fn server() -> TestServer {
    TestServer::start_with(&[&all_models_flag(), "--default-models=none"]).await
}

async fn rank(client: &Client, kernel: &MeasuredGraph, target: &str) -> Ranking {
    let graph = GraphHandle::from_measured(kernel);
    let request = RankRequest::new(&graph, configurations(kernel)).target(target);
    client.rank(&request).await.unwrap()
}

fn reasons(ranking: &Ranking) -> Vec<&str> {
    let warnings = ranking.warnings.iter();
    warnings.map(|warning| warning.reason.as_str()).collect()
}

fn name(model: &ModelReference) -> &str {
    &model.name
}

#[tokio::test]
async fn the_model_of_the_compiler_answers() {
    let server = server().await;
    let client = server.client().await;
    let kernel = &kernels()[0];
    for (target, model, warning) in [
        ("AMD EPYC, IREE 3.13.0, 1 thread", IREE_MODEL, None),
        (
            "Intel(R) Xeon(R) Processor, XLA of jax 0.10.2",
            TILE_MODEL,
            None,
        ),
        ("TPU v3, xla", TILE_MODEL, Some("MODEL_FOR_OTHER_TARGET")),
        (
            "AMD EPYC, gcc 12.2",
            IREE_MODEL,
            Some("MODEL_FOR_OTHER_TARGET"),
        ),
        ("", IREE_MODEL, Some("TARGET_UNKNOWN")),
        ("my board", IREE_MODEL, Some("TARGET_UNKNOWN")),
    ] {
        let ranking = rank(&client, kernel, target).await;
        assert_eq!(name(&ranking.model), model, "{target}");
        let mut found = reasons(&ranking);
        found.retain(|reason| reason.contains("TARGET"));
        assert_eq!(found, Vec::from_iter(warning), "{target}");
    }
}

#[tokio::test]
async fn what_was_measured_names_the_target_too() {
    let server = server().await;
    let client = server.client().await;
    let kernel = &kernels()[0];
    let graph = GraphHandle::from_measured(kernel);
    let adapt = Adapt::new("Intel(R) Xeon(R) Processor, XLA of jax 0.10.2");
    let request = RankRequest::new(&graph, configurations(kernel)).adapt(Some(adapt));
    let ranking = client.rank(&request).await.unwrap();
    assert_eq!(name(&ranking.model), TILE_MODEL);
}

#[tokio::test]
async fn a_model_that_a_call_or_an_operator_chose_answers_for_every_target() {
    let chosen = TestServer::start_with(&[&all_models_flag()]).await;
    let kernel = &kernels()[0];
    let ranking = rank(&chosen.client().await, kernel, "AMD EPYC, IREE 3.13.0").await;
    assert_eq!(name(&ranking.model), TILE_MODEL);
    assert_eq!(reasons(&ranking), ["MODEL_FOR_OTHER_TARGET"]);
    assert_eq!(
        reasons(&rank(&chosen.client().await, kernel, "").await),
        [""; 0]
    );

    let server = server().await;
    let graph = GraphHandle::from_measured(kernel);
    let request = RankRequest::new(&graph, configurations(kernel))
        .target("TPU v3, XLA")
        .model(Some(IREE_MODEL.parse().unwrap()));
    let ranking = server.client().await.rank(&request).await.unwrap();
    assert_eq!(name(&ranking.model), IREE_MODEL);
    assert!(reasons(&ranking).contains(&"MODEL_FOR_OTHER_TARGET"));
}

#[tokio::test]
async fn tiles_of_its_own_compiler_are_trusted() {
    let server = server().await;
    let client = server.client().await;
    let kernels = read_graphs(&fixture("measured/tile_dispatches.pb"));
    let mut sum = 0.0;
    for kernel in &kernels {
        let confidence = rank(&client, kernel, "AMD EPYC, IREE 3.13.0")
            .await
            .confidence;
        let confidence = confidence.unwrap();
        let tau = confidence.expected_tau.unwrap();
        let [low, high] = [confidence.expected_tau_low, confidence.expected_tau_high];
        assert!(low.unwrap() < tau && tau < high.unwrap(), "{confidence:?}");
        sum += tau;
    }
    let mean = sum / kernels.len() as f64;
    assert!(mean > 0.4, "{mean}");
}

#[tokio::test]
async fn tiles_of_another_compiler_are_not_trusted() {
    // The models that ship, of which one ranks tiles.
    let server = TestServer::start_with(&[
        &format!("--models={}", repository("models/registry").display()),
        "--default-models=none",
    ])
    .await;
    let client = server.client().await;
    let kernels = kernels();
    for kernel in &kernels {
        let ranking = rank(&client, kernel, "").await;
        assert_eq!(ranking.confidence, None, "{}", kernel.name);
        assert!(reasons(&ranking).contains(&"RANKING_UNSURE"), "{ranking:?}");
        let named = rank(
            &client,
            kernel,
            "Intel(R) Xeon(R) Processor, XLA of jax 0.10.2",
        )
        .await;
        assert_eq!(named.confidence, None);
        assert!(reasons(&named).contains(&"RANKING_UNSURE"), "{named:?}");
        assert!(named.warnings.iter().any(|warning| {
            warning.reason == "MODEL_FOR_OTHER_TARGET" && warning.message.contains(IREE_MODEL)
        }));
    }
}

#[tokio::test]
async fn a_listed_model_says_what_it_is_for() {
    let server = server().await;
    let listed = server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await;
    let listed = listed.unwrap().into_inner().models;
    let of = |name: &str| {
        let model = listed.iter().find(|model| model.name == name).unwrap();
        model.targets.clone()
    };
    assert_eq!(of(IREE_MODEL), ["AMD EPYC, IREE 3.13.0, 1 thread"]);
    assert_eq!(
        of("layout-xla-cpu"),
        ["Intel(R) Xeon(R) Processor, XLA of jax 0.10.2, 1 thread"]
    );
}
