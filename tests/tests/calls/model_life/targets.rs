//! A call says what its configurations are for, and the model that was trained for it answers. No model answers for another
//! compiler without a warning, and what is unlike the training data is not trusted.

use hlorank_tests::prelude::*;

/// The default for tiles, which was trained for IREE; [`TILE_MODEL`] for XLA.
const IREE_MODEL: &str = "tile-iree-cpu";

/// A target that [`TILE_MODEL`] was trained for.
const XLA: &str = "Intel(R) Xeon(R) Processor, XLA of jax 0.10.2";

/// A kernel with tiles of XLA.
fn kernel() -> MeasuredGraph {
    read_graphs(&fixture("measured/tile_kernels.pb")).remove(0)
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

#[tokio::test]
async fn the_model_of_the_compiler_answers() {
    let server = server().await;
    let client = server.client().await;
    let kernel = kernel();
    for (target, model, warning) in [
        ("AMD EPYC, IREE 3.13.0, 1 thread", IREE_MODEL, None),
        (XLA, TILE_MODEL, None),
        ("TPU v3, xla", TILE_MODEL, Some("MODEL_FOR_OTHER_TARGET")),
        (
            "AMD EPYC, gcc 12.2",
            IREE_MODEL,
            Some("MODEL_FOR_OTHER_TARGET"),
        ),
        ("", IREE_MODEL, Some("TARGET_UNKNOWN")),
        ("my board", IREE_MODEL, Some("TARGET_UNKNOWN")),
    ] {
        let ranking = rank(&client, &kernel, target).await;
        assert_eq!(ranking.model.name, model, "{target}");
        let mut found = reasons(&ranking);
        found.retain(|reason| reason.contains("TARGET"));
        assert_eq!(found, Vec::from_iter(warning), "{target}");
    }
    // What was measured names the target, too.
    let ranking = rank_measured(&client, &kernel, Some(Adapt::new(XLA))).await;
    assert_eq!(ranking.model.name, TILE_MODEL);

    let of_iree = ["AMD EPYC", "Intel(R) Xeon(R) Processor"]
        .map(|processor| format!("{processor}, IREE 3.13.0, 1 thread"));
    for (name, targets) in [
        (IREE_MODEL, &of_iree[..]),
        ("layout-xla-cpu", &[format!("{XLA}, 1 thread")]),
    ] {
        let model = client.get_model(name, None).await.unwrap();
        assert_eq!(model.targets, targets, "a listed model says so");
    }
}

#[tokio::test]
async fn a_model_that_a_call_or_an_operator_chose_answers_for_every_target() {
    let chosen = TestServer::start_with(&[&all_models_flag()]).await;
    let (client, kernel) = (chosen.client().await, kernel());
    let ranking = rank(&client, &kernel, "AMD EPYC, IREE 3.13.0").await;
    assert_eq!(ranking.model.name, TILE_MODEL);
    assert_eq!(reasons(&ranking), ["MODEL_FOR_OTHER_TARGET"]);
    assert_eq!(reasons(&rank(&client, &kernel, "").await), [""; 0]);

    let server = server().await;
    let graph = GraphHandle::from_measured(&kernel);
    let request = RankRequest::new(&graph, configurations(&kernel))
        .target("TPU v3, XLA")
        .model(Some(IREE_MODEL.parse().unwrap()));
    let ranking = server.client().await.rank(&request).await.unwrap();
    assert_eq!(ranking.model.name, IREE_MODEL);
    assert!(reasons(&ranking).contains(&"MODEL_FOR_OTHER_TARGET"));
}

#[tokio::test]
async fn tiles_of_its_own_compiler_are_trusted() {
    let server = server().await;
    let client = server.client().await;
    let kernels = read_graphs(&fixture("measured/tile_dispatches.pb"));
    let mut sum = 0.0;
    for kernel in &kernels {
        let ranking = rank(&client, kernel, "AMD EPYC, IREE 3.13.0").await;
        let confidence = ranking.confidence.unwrap();
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
    let models = format!("--models={}", repository("models/registry").display());
    let server = TestServer::start_with(&[&models, "--default-models=none"]).await;
    let client = server.client().await;
    for kernel in read_graphs(&fixture("measured/tile_kernels.pb")) {
        for target in ["", XLA] {
            let ranking = rank(&client, &kernel, target).await;
            assert_eq!(ranking.confidence, None, "{}", kernel.name);
            assert!(reasons(&ranking).contains(&"RANKING_UNSURE"), "{ranking:?}");
            let is_named = ranking.warnings.iter().any(|warning| {
                warning.reason == "MODEL_FOR_OTHER_TARGET" && warning.message.contains(IREE_MODEL)
            });
            assert_eq!(is_named, target == XLA, "{ranking:?}");
        }
    }
}
