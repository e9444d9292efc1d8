//! What calls about a space cost that learn from measurements.

use hlorank_tests::prelude::*;

use super::{
    search::suggest_request,
    site::{Site, Sources},
    space::Space,
};

const CANDIDATES: usize = 4_000;
const COLUMNS: usize = 12;
const MEASURED: usize = 100;
/// Calls of a kind, each with other measurements, so that no answer is cached.
const CALLS: usize = 41;

pub(super) async fn judge() {
    let mut site = Site::start(&[], Sources::None, 0).await;
    let (mut ranking, mut suggesting) = (Vec::new(), Vec::new());
    let space = synthetic();
    let mut random = Rng::with_seed(1);
    for _ in 0..CALLS {
        let SuggestConfigsRequest {
            graph,
            batch,
            adapt,
            ..
        } = after_measurements(&space, &mut random);
        let rank = RankConfigsRequest {
            graph,
            batch,
            adapt,
            top_k: 10,
            ..RankConfigsRequest::default()
        };
        let start = Instant::now();
        site.client.rank_configs(rank).await.expect("a ranking");
        ranking.push(start.elapsed());
        let suggest = after_measurements(&space, &mut random);
        let start = Instant::now();
        let suggested = site.client.suggest_configs(suggest).await;
        suggested.expect("a suggestion");
        suggesting.push(start.elapsed());
    }
    let how = format!(
        "{CANDIDATES} candidates of {COLUMNS} columns at the client after {MEASURED} measurements, others in each call"
    );
    for (call, times) in [("rank", ranking), ("suggest", suggesting)] {
        let name = format!("space_{call}_{MEASURED}");
        Figure::of_median(&name, &Times::new(times), 15.0, &how).write();
    }
}

/// Returns a request for one of all configurations after some that are drawn.
fn after_measurements(space: &Space, random: &mut Rng) -> SuggestConfigsRequest {
    let every: Vec<usize> = (0..space.len()).collect();
    let measured = random.choose_multiple(0..space.len(), MEASURED);
    suggest_request(space, space.configs(&every), Sources::None, &measured)
}

/// Powers of two, and seconds that depend on all of them.
fn synthetic() -> Space {
    let mut random = Rng::with_seed(0);
    let exponents: Vec<f32> = (0..CANDIDATES * COLUMNS)
        .map(|_| f32::from(random.u8(0..6)))
        .collect();
    let seconds = exponents.chunks_exact(COLUMNS).map(|exponents| {
        let best = |column: usize| (column % 5) as f32;
        let off = |(column, exponent): (usize, &f32)| (exponent - best(column)).powi(2);
        let off: f32 = exponents.iter().enumerate().map(off).sum();
        1e-3 * f64::from(0.05 * off + 0.01 * random.f32()).exp()
    });
    Space {
        kernel: "synthetic".to_owned(),
        target: "a target".to_owned(),
        columns: (0..COLUMNS).map(|column| format!("c{column}")).collect(),
        seconds: seconds.collect(),
        values: exponents.iter().map(|exponent| exponent.exp2()).collect(),
    }
}
