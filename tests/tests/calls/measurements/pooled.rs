//! Stored measurements of kernels of one structure teach about a kernel that was never measured.

use hlorank_proto::{v1, v1::SourceRefusal};

use super::*;

/// Place of a size of the output among the features of a node.
const DIMENSION: usize = 21;

/// Kernels of one structure, whose shapes differ.
fn kernels(count: u16) -> Vec<GraphHandle> {
    let kernel = measured_graph_of(Task::Tile).graph.to_message().unwrap();
    let of_shape = |number: u16| {
        let mut kernel = kernel.clone();
        let Some(Source::Features(features)) = &mut kernel.source else {
            panic!("a kernel has features")
        };
        let mut bytes = features.node_feat.to_vec();
        bytes[4 * DIMENSION..][..4].copy_from_slice(&f32::from(64 * number).to_le_bytes());
        features.node_feat = bytes.into();
        GraphHandle::of_message(kernel).unwrap()
    };
    (1..=count).map(of_shape).collect()
}

/// Bounds of all tiles of this many sizes.
fn bounds(sizes: usize) -> Vec<[i64; 2]> {
    (0..sizes * sizes)
        .map(|number| [1 << (number % sizes), 1 << (number / sizes)])
        .collect()
}

fn candidates() -> Configurations {
    Configurations::Tile(tiles(&bounds(4)))
}

/// Times that fall with the second bound and rise a little with the first.
fn seconds(kernel: usize) -> Vec<f64> {
    let kernel = 1e-3 * (kernel + 1) as f64;
    let time = |[first, second]: [i64; 2]| kernel * (1.0 + 0.02 * first as f64) / second as f64;
    bounds(4).into_iter().map(time).collect()
}

async fn report(client: &Client, kernel: &GraphHandle, seconds: &[f64]) {
    let outcomes = run_times(seconds.iter().copied());
    let measured = Adapt::new(TARGET).measured(&candidates(), &outcomes);
    client.report_measurements(kernel, &measured).await.unwrap();
}

async fn rank(client: &Client, kernel: &GraphHandle, target: &str) -> Ranking {
    let request = RankRequest::new(kernel, &candidates()).with_scores();
    let adapt = Adapt::new(target).use_stored();
    client.rank(&request.adapt(Some(adapt))).await.unwrap()
}

#[tokio::test]
async fn kernels_of_one_structure_teach_before_a_kernel_is_measured_and_on_their_target_alone() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let kernels = kernels(5);
    let (own, others) = kernels.split_last().unwrap();
    let tau = |ranking: &Ranking| {
        let pairs = pairs(&ranking.scores, &seconds(9));
        pairs.kendall_tau().unwrap()
    };
    let unused = v1::RelatedSource {
        kind: v1::SourceKind::Kernels.into(),
        refusal: SourceRefusal::TooFewMeasurements.into(),
        ..v1::RelatedSource::default()
    };
    let today = rank(&client, own, TARGET).await;
    let adaptation = today.adaptation.as_ref().unwrap();
    assert_eq!(adaptation.sources.first(), Some(&unused));
    for (number, kernel) in others.iter().enumerate() {
        report(&client, kernel, &seconds(number)).await;
    }
    let pooled = rank(&client, own, TARGET).await;
    let adaptation = pooled.adaptation.as_ref().unwrap();
    let pool = adaptation.sources.first().unwrap();
    assert_eq!((pool.lists, pool.measured_configs), (4, 64), "{pool:?}");
    assert!(pool.used, "{pool:?}");
    assert!(pool.agreement > pool.model_tau + 0.03, "{pool:?}");
    let (before, after) = (tau(&today), tau(&pooled));
    println!("tau {before:.2} before, {after:.2} with the pool");
    assert!(after > before && after > 0.8, "{before} {after}");
    assert!(
        !adaptation.adapted && pooled.predicted_seconds.is_empty(),
        "how long it takes is not known"
    );
    let elsewhere = rank(&client, own, "another board").await;
    assert_eq!(elsewhere.scores, today.scores);
    assert_eq!(elsewhere.adaptation.unwrap().sources, [unused]);

    let request = SuggestRequest::new(own, &candidates()).adapt(Some(stored()));
    let suggested = client.suggest(&request).await.unwrap();
    assert_eq!(suggested.suggestions[0].config, pooled.best[0].config);

    report(&client, own, &seconds(9)).await;
    let both = rank(&client, own, TARGET).await;
    assert!(tau(&both) > 0.95);
    let adaptation = both.adaptation.unwrap();
    assert!(adaptation.adapted && adaptation.sources[0].used);
    assert_eq!(adaptation.stored_measurements, 16);
}

#[tokio::test]
async fn a_pool_of_shuffled_times_and_one_kernel_alone_are_not_used() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let kernels = kernels(5);
    let (own, others) = kernels.split_last().unwrap();
    let today = rank(&client, own, TARGET).await.scores;
    for (number, kernel) in others.iter().enumerate() {
        let times = seconds(number);
        // Each kernel has another order.
        let order = [3, 5, 11, 13][number];
        let shuffled = (0..16).map(|place| times[(place * order + number) % 16]);
        report(&client, kernel, &shuffled.collect::<Vec<f64>>()).await;
        let ranking = rank(&client, own, TARGET).await;
        assert_eq!(ranking.scores, today);
        let pool = ranking.adaptation.unwrap().sources.remove(0);
        assert!(!pool.used && pool.lists as usize == number + 1, "{pool:?}");
        let refusal = match number {
            0 => SourceRefusal::TooFewMeasurements,
            _ => SourceRefusal::UnlikeOthers,
        };
        assert_eq!(pool.refusal(), refusal, "{pool:?}");
    }
}

/// Reports tiles of a kernel, whose times depend on both bounds.
async fn report_tiles(client: &Client, kernel: &GraphHandle, number: usize, bounds: &[[i64; 2]]) {
    let seconds = |bounds: &[i64; 2]| {
        let [rising, falling] = bounds.map(|bound| f64::from(bound.ilog2()));
        1e-3 * (number + 1) as f64 * (1.0 + 0.02 * rising) / (1.0 + falling)
    };
    let outcomes = run_times(bounds.iter().map(seconds));
    let configurations = Configurations::Tile(tiles(bounds));
    let measured = Adapt::new(TARGET).measured(&configurations, &outcomes);
    client.report_measurements(kernel, &measured).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_takes_the_same_of_many_measurements_in_any_order_of_reports() {
    let (_folder, _one, forth) = storing_server(&[]).await;
    let (_other_folder, _other, back) = storing_server(&[]).await;
    // A pool takes 64 tiles of eight kernels.
    let kernels = kernels(11);
    let (unmeasured, measured) = kernels.split_last().unwrap();
    let all = bounds(10);
    let (some, rest) = all.split_at(30);
    for (number, kernel) in measured.iter().enumerate() {
        report_tiles(&forth, kernel, number, &all).await;
    }
    for (number, kernel) in measured.iter().enumerate().rev() {
        for tiles in [rest, some, some] {
            report_tiles(&back, kernel, number, tiles).await;
        }
    }
    for kernel in [unmeasured, &measured[0], &measured[9]] {
        let expected = rank(&forth, kernel, TARGET).await;
        let pool = &expected.adaptation.as_ref().unwrap().sources[0];
        assert_eq!((pool.lists, pool.measured_configs), (8, 8 * 64), "{pool:?}");
        assert!(pool.used, "{pool:?}");
        let ranking = rank(&back, kernel, TARGET).await;
        assert_eq!(all_bits(&ranking), all_bits(&expected));
        assert_eq!(ranking.adaptation, expected.adaptation);
    }
}
