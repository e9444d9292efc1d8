//! Stored measurements of kernels of one structure teach about a kernel that was never measured.

use hlorank_graph::Graph;
use hlorank_proto::{v1, v1::SourceRefusal};
use hlorank_tests::prelude::*;

use crate::measurements::{TARGET, folder, start};

/// Place of a size of the output among the features of a node.
const DIMENSION: usize = 21;

/// Kernels of one structure, whose shapes differ.
pub(crate) fn kernels(count: u16) -> Vec<GraphHandle> {
    let kernel = measured_graph_of(Task::Tile);
    (1..=count)
        .map(|number| of_shape(&kernel.graph, number))
        .collect()
}

/// The same kernel with an output of another size.
fn of_shape(kernel: &Graph, number: u16) -> GraphHandle {
    let mut message = kernel.to_message().unwrap();
    let Some(Source::Features(features)) = &mut message.source else {
        panic!("a kernel has features")
    };
    let mut bytes = features.node_feat.to_vec();
    bytes[4 * DIMENSION..][..4].copy_from_slice(&f32::from(64 * number).to_le_bytes());
    features.node_feat = bytes.into();
    GraphHandle::of_message(message).unwrap()
}

fn bounds() -> Vec<[i64; 2]> {
    (0..16)
        .map(|number| [1 << (number % 4), 1 << (number / 4)])
        .collect()
}

fn tiles() -> Configurations {
    Configurations::Tile(hlorank_tests::tiles(&bounds()))
}

/// Times that fall with the second bound and rise a little with the first.
fn seconds(kernel: usize) -> Vec<f64> {
    let kernel = 1e-3 * (kernel + 1) as f64;
    bounds()
        .iter()
        .map(|&[first, second]| kernel * (1.0 + 0.02 * first as f64) / second as f64)
        .collect()
}

fn measured(target: &str, seconds: &[f64]) -> Adapt {
    let outcomes = run_times(seconds.iter().copied());
    Adapt::new(target).measured(&tiles(), &outcomes)
}

async fn rank(client: &Client, kernel: &GraphHandle, target: &str) -> Ranking {
    let request = RankRequest::new(kernel, &tiles()).with_scores();
    client
        .rank(&request.adapt(Some(Adapt::new(target).use_stored())))
        .await
        .unwrap()
}

fn tau(scores: &[f32], seconds: &[f64]) -> f64 {
    pairs(scores, seconds).kendall_tau().unwrap()
}

/// What an answer says before other kernels were measured.
fn no_kernels() -> v1::RelatedSource {
    v1::RelatedSource {
        kind: v1::SourceKind::Kernels.into(),
        refusal: SourceRefusal::TooFewMeasurements.into(),
        ..v1::RelatedSource::default()
    }
}

#[tokio::test]
async fn kernels_of_one_structure_teach_before_a_kernel_is_measured() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let kernels = kernels(5);
    let (own, others) = kernels.split_last().unwrap();
    let today = rank(&client, own, TARGET).await;
    assert_eq!(
        today.adaptation.as_ref().unwrap().sources.first(),
        Some(&no_kernels()),
        "nothing was measured"
    );
    for (number, kernel) in others.iter().enumerate() {
        client
            .report_measurements(kernel, &measured(TARGET, &seconds(number)))
            .await
            .unwrap();
    }
    let pooled = rank(&client, own, TARGET).await;
    let adaptation = pooled.adaptation.as_ref().unwrap();
    let pool = adaptation.sources.first().unwrap();
    assert_eq!(
        (pool.lists, pool.measured_configs, pool.used),
        (4, 64, true),
        "{pool:?}"
    );
    assert!(pool.agreement > pool.model_tau + 0.03, "{pool:?}");
    let (before, after) = (
        tau(&today.scores, &seconds(9)),
        tau(&pooled.scores, &seconds(9)),
    );
    println!("tau {before:.2} before, {after:.2} with the pool");
    assert!(after > before && after > 0.8, "{before} {after}");
    assert!(
        !adaptation.adapted && pooled.predicted_seconds.is_empty(),
        "how long it takes is not known"
    );

    let wanted = Adapt::new(TARGET).use_stored();
    let candidates = tiles();
    let suggest = SuggestRequest::new(own, &candidates)
        .adapt(Some(&wanted))
        .count(1);
    let suggested = client.suggest(&suggest).await.unwrap();
    assert_eq!(suggested.suggestions[0].config, pooled.best[0].config);

    client
        .report_measurements(own, &measured(TARGET, &seconds(9)))
        .await
        .unwrap();
    let both = rank(&client, own, TARGET).await;
    let adaptation = both.adaptation.unwrap();
    assert!(
        adaptation.adapted && adaptation.sources[0].used && adaptation.stored_measurements == 16
    );
    assert!(tau(&both.scores, &seconds(9)) > 0.95);
}

#[tokio::test]
async fn a_pool_of_shuffled_times_and_one_kernel_alone_are_not_used() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let kernels = kernels(5);
    let (own, others) = kernels.split_last().unwrap();
    let today = rank(&client, own, TARGET).await.scores;
    for (number, kernel) in others.iter().enumerate() {
        let times = seconds(number);
        // Each kernel has another order.
        let order = [3, 5, 11, 13][number];
        let shuffled: Vec<f64> = (0..16)
            .map(|place| times[(place * order + number) % 16])
            .collect();
        client
            .report_measurements(kernel, &measured(TARGET, &shuffled))
            .await
            .unwrap();
        let ranking = rank(&client, own, TARGET).await;
        let pool = ranking.adaptation.unwrap().sources[0].clone();
        assert!(!pool.used && pool.lists as usize == number + 1, "{pool:?}");
        let refusal = if number == 0 {
            SourceRefusal::TooFewMeasurements
        } else {
            SourceRefusal::UnlikeOthers
        };
        assert_eq!(pool.refusal(), refusal, "{pool:?}");
        assert_eq!(ranking.scores, today);
    }
}

#[tokio::test]
async fn a_poisoned_target_does_not_reach_another() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let kernels = kernels(4);
    let (own, others) = kernels.split_last().unwrap();
    let today = rank(&client, own, TARGET).await.scores;
    for (number, kernel) in others.iter().enumerate() {
        let wrong: Vec<f64> = seconds(number)
            .iter()
            .map(|seconds| seconds.recip())
            .collect();
        client
            .report_measurements(kernel, &measured("poisoned", &wrong))
            .await
            .unwrap();
    }
    let poisoned = rank(&client, own, "poisoned").await;
    assert!(poisoned.adaptation.unwrap().sources[0].used);
    let ranking = rank(&client, own, TARGET).await;
    assert_eq!(
        (ranking.scores, ranking.adaptation.unwrap().sources),
        (today, vec![no_kernels()])
    );
}
