//! Servers that exchange measurements of kernels of one structure pool them alike.

use hlorank_client::v1;
use hlorank_tests::prelude::*;

use super::{
    exported::{hlorank, path},
    pooled::kernels,
    *,
};

/// Number of measured kernels, of which a pool takes eight.
const MEASURED: u16 = 10;

/// Number of tiles of each. A pool takes 64 of them, and each server has half.
const TILES: usize = 100;

fn all_tiles() -> Configurations {
    let bounds: Vec<[i64; 2]> = (0..TILES)
        .map(|number| [1 << (number % 10), 1 << (number / 10)])
        .collect();
    Configurations::Tile(tiles(&bounds))
}

/// Reports every `step`th tile of a kernel from `first`.
async fn report(
    client: &Client,
    kernels: &[GraphHandle],
    number: usize,
    first: usize,
    step: usize,
) {
    let chosen: Vec<usize> = (first..TILES).step_by(step).collect();
    let seconds = |tile: &usize| {
        let (rising, falling) = ((tile % 10) as f64, (tile / 10) as f64);
        1e-3 * (number + 1) as f64 * (1.0 + 0.02 * rising) / (1.0 + falling)
    };
    let outcomes = run_times(chosen.iter().map(seconds));
    let measured = Adapt::new(TARGET).measured(&part(&all_tiles(), chosen), &outcomes);
    client
        .report_measurements(&kernels[number], &measured)
        .await
        .unwrap();
}

/// The bits of a ranking, what it rests on, and what is suggested next.
type Answer = (Vec<u32>, v1::Adaptation, Vec<usize>);

async fn ask(client: &Client, kernel: &GraphHandle) -> Answer {
    let (tiles, adapt) = (all_tiles(), Adapt::new(TARGET).use_stored());
    let request = RankRequest::new(kernel, &tiles)
        .with_scores()
        .adapt(Some(adapt.clone()));
    let ranking = client.rank(&request).await.unwrap();
    let suggest = SuggestRequest::new(kernel, &tiles)
        .adapt(Some(&adapt))
        .count(4);
    let suggested = client.suggest(&suggest).await.unwrap();
    let chosen = suggested
        .suggestions
        .iter()
        .map(|suggestion| suggestion.config)
        .collect();
    (all_bits(&ranking), ranking.adaptation.unwrap(), chosen)
}

fn pool((_, adaptation, _): &Answer) -> v1::RelatedSource {
    adaptation.sources[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_exchange_parts_of_the_kernels_of_one_structure_pool_them_alike() {
    let folders = [folder(), folder(), folder()];
    let (one, one_client) = start(folders[0].path(), &[]).await;
    let (other, other_client) = start(folders[1].path(), &[]).await;
    let (_third, third_client) = start(folders[2].path(), &[]).await;
    let kernels = kernels(MEASURED + 1);
    let (unmeasured, measured) = kernels.split_last().unwrap();
    for number in 0..measured.len() {
        report(&one_client, measured, number, 0, 2).await;
        report(&other_client, measured, measured.len() - 1 - number, 1, 2).await;
    }
    // The third server gets the reports of all kernels, and a third of the tiles of every other kernel a second time.
    for number in (0..measured.len()).rev() {
        if number % 2 == 0 {
            report(&third_client, measured, number, 2, 3).await;
        }
        report(&third_client, measured, number, 0, 1).await;
    }
    let [of_one, of_other] = [
        ask(&one_client, unmeasured).await,
        ask(&other_client, unmeasured).await,
    ];
    for answer in [&of_one, &of_other] {
        assert_eq!(
            (pool(answer).lists, pool(answer).measured_configs),
            (8, 8 * 50),
            "{answer:?}"
        );
    }
    assert_ne!(of_one, of_other, "each knows a half");

    let [from_one, from_other] =
        [&folders[0], &folders[1]].map(|folder| folder.path().join("exported"));
    hlorank(&one, &["export", "--out", path(&from_one)]);
    hlorank(&other, &["export", "--out", path(&from_other)]);
    hlorank(&one, &["import", path(&from_other)]);
    hlorank(&other, &["import", path(&from_one)]);
    for kernel in [unmeasured, &measured[0], &measured[measured.len() - 1]] {
        let expected = ask(&third_client, kernel).await;
        let pool = pool(&expected);
        assert_eq!(
            (pool.lists, pool.measured_configs, pool.used),
            (8, 8 * 64, true),
            "{pool:?}"
        );
        for client in [&one_client, &other_client] {
            assert_eq!(ask(client, kernel).await, expected);
        }
    }
}
