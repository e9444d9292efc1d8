//! Two versions are compared on kept measurements.

use hlorank_client::{ModelReference, v1::Verdict};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_version_that_knows_the_hardware_ranks_better() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let boards = [
        ("one board", TILE_MODEL),
        ("another board", SMALL_TILE_MODEL),
    ];
    let mut kernels = MeasuredList::kernels();
    for (target, model) in boards {
        for kernel in &mut kernels {
            // The times have the order of the model's scores.
            let scores = kernel.scores(&client, model).await;
            let faster = |score: f32| scores.iter().filter(|other| **other < score).count();
            let time = |&score: &f32| 1e-3 * (1 + faster(score)) as f64;
            kernel.seconds = scores.iter().map(time).collect();
            kernel.report(&client, target).await;
        }
    }
    let models: [ModelReference; 2] = boards.map(|(_, model)| model.parse().unwrap());
    let [first, second] = &models;
    let compare = async |models: [&ModelReference; 2], target: &str| {
        client.compare_models(models, target).await.unwrap()
    };
    let compared = compare([first, second], "one board").await;
    assert_eq!(compared.verdict(), Verdict::First);
    assert_eq!(compared.graphs as usize, kernels.len());
    let tau = compared.kendall_tau.unwrap();
    let difference = tau.second - tau.first;
    assert!(tau.first > 0.999 && difference < 0.0, "{tau:?}");
    let interval = tau.difference_low..=tau.difference_high;
    assert!(interval.contains(&difference), "{tau:?}");
    assert!(tau.difference_high < 0.0, "{tau:?}");
    assert_eq!(compared.top_pick_regret.unwrap().first, 0.0);
    let again = compare([first, second], "one board").await;
    assert_eq!(again, compared, "every time");

    let other = compare([first, second], "another board").await;
    assert_eq!(other.verdict(), Verdict::Second);
    let both = compare([first, second], "").await;
    assert_eq!(both.graphs as usize, 2 * kernels.len());
    let same = compare([first, first], "").await;
    assert_eq!(same.verdict(), Verdict::Undecided);
    let tau = same.kendall_tau.unwrap();
    assert_eq!([tau.difference_low, tau.difference_high], [0.0; 2]);
    let nothing = compare([first, second], "no such board").await;
    assert_eq!((nothing.graphs, nothing.verdict()), (0, Verdict::Undecided));
}
