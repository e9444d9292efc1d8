//! Two versions are compared on kept measurements.

use hlorank_client::v1::{CompareModelsRequest, Verdict};
use hlorank_tests::prelude::*;

use super::*;

const TILES: &str = TILE_MODEL;
const OTHER_TILES: &str = SMALL_TILE_MODEL;

/// Kernels whose measured times have the order of a model's scores.
async fn kernels_that_a_model_knows(client: &Client, model: &str) -> Vec<Kernel> {
    let mut kernels = Kernel::all();
    for kernel in &mut kernels {
        let scores = kernel.scores(client, model).await;
        let slower = |score: f32| scores.iter().filter(|other| **other < score).count();
        kernel.seconds = scores
            .iter()
            .map(|&score| 1e-3 * (1.0 + slower(score) as f64))
            .collect();
    }
    kernels
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_that_knows_the_hardware_ranks_better() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let models = [TILES, OTHER_TILES].map(|name| name.parse().unwrap());
    let [first, second] = &models;
    for (target, model) in [("one board", TILES), ("another board", OTHER_TILES)] {
        for kernel in kernels_that_a_model_knows(&client, model).await {
            kernel.report(&client, target).await;
        }
    }
    let kernels = Kernel::all().len();
    let compared = client
        .compare_models([first, second], "one board")
        .await
        .unwrap();
    assert_eq!(
        (compared.verdict(), compared.graphs as usize),
        (Verdict::First, kernels)
    );
    let tau = compared.kendall_tau.unwrap();
    assert!(tau.first > 0.999 && tau.second < tau.first, "{tau:?}");
    assert!(
        tau.difference_low <= tau.second - tau.first
            && tau.second - tau.first <= tau.difference_high
    );
    assert!(tau.difference_high < 0.0, "{tau:?}");
    assert_eq!(compared.top_pick_regret.unwrap().first, 0.0);
    let again = client
        .compare_models([first, second], "one board")
        .await
        .unwrap();
    assert_eq!(again, compared, "every time");

    let other = client
        .compare_models([first, second], "another board")
        .await
        .unwrap();
    assert_eq!(other.verdict(), Verdict::Second);
    let both = client.compare_models([first, second], "").await.unwrap();
    assert_eq!(both.graphs as usize, 2 * kernels);
    let same = client.compare_models([first, first], "").await.unwrap();
    let tau = same.kendall_tau.unwrap();
    assert_eq!(
        (same.verdict(), tau.difference_low, tau.difference_high),
        (Verdict::Undecided, 0.0, 0.0)
    );
    let nothing = client
        .compare_models([first, second], "no such board")
        .await
        .unwrap();
    assert_eq!((nothing.graphs, nothing.verdict()), (0, Verdict::Undecided));
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_that_cannot_be_compared_are_named() {
    let folder = folder();
    let (server, _client) = start(folder.path(), &[]).await;
    let selector = |name: &str, version| {
        Some(ModelSelector {
            name: name.to_owned(),
            version,
            ..ModelSelector::default()
        })
    };
    let refused = async |server: &TestServer, second: Option<ModelSelector>| {
        let (first, target) = (selector(TILES, 0), String::new());
        let request = CompareModelsRequest {
            first,
            second,
            target,
        };
        let status = server
            .models()
            .await
            .compare_models(request)
            .await
            .unwrap_err();
        let reason = reason(&status);
        (status.code(), reason, status.message().to_owned())
    };
    let (code, reason, message) = refused(&server, None).await;
    assert_eq!(
        (code, reason.as_str()),
        (Code::InvalidArgument, "FIELD_MISSING"),
        "{message}"
    );
    let (code, reason, message) = refused(&server, selector("layout-xla-cpu", 0)).await;
    assert_eq!(
        (code, reason.as_str()),
        (Code::InvalidArgument, "FIELD_INVALID"),
        "{message}"
    );
    says!(message, "a model of layout", format!("`{TILE_MODEL}`"));
    let (code, reason, message) = refused(&server, selector(TILES, 77)).await;
    assert_eq!(
        (code, reason.as_str()),
        (Code::NotFound, "MODEL_NOT_FOUND"),
        "{message}"
    );
    let (code, reason, message) = refused(&TestServer::start().await, selector(TILES, 0)).await;
    assert_eq!(
        (code, reason.as_str()),
        (Code::FailedPrecondition, "MEASUREMENTS_OFF"),
        "{message}"
    );
}
