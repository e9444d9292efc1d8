//! What calls about a space cost that learn from measurements.

use hlorank_tests::prelude::*;

use super::{
    search::adapt,
    site::{Site, Sources},
    space::Space,
};

const CANDIDATES: usize = 4_000;
const COLUMNS: usize = 12;
const MEASURED: [usize; 2] = [20, 100];
/// Calls of a kind, each with other measurements, so that no answer is cached.
const CALLS: u64 = 41;

/// Other targets with stored measurements, if there are any.
const SOURCES: usize = 4;

pub(super) async fn judge() {
    let spaces: Vec<Space> = (0..=SOURCES).map(synthetic).collect();
    for sources in [Sources::None, Sources::OtherTargets] {
        let mut site = Site::start(&spaces[1..], sources, 0).await;
        for measured in MEASURED {
            let (mut ranking, mut suggesting) = (Vec::new(), Vec::new());
            for draw in 0..CALLS {
                let rank = rank(&spaces[0], sources, &drawn(measured, draw));
                let start = Instant::now();
                site.client.rank_configs(rank).await.expect("a ranking");
                ranking.push(start.elapsed().as_secs_f64() * 1e3);
                let suggest = suggest(&spaces[0], sources, &drawn(measured, CALLS + draw));
                let start = Instant::now();
                let suggested = site.client.suggest_configs(suggest).await;
                suggested.expect("a suggestion");
                suggesting.push(start.elapsed().as_secs_f64() * 1e3);
            }
            write("rank", sources, measured, ranking);
            write("suggest", sources, measured, suggesting);
        }
    }
}

/// Powers of two, and seconds that depend on all of them, and a little on the target.
fn synthetic(target: usize) -> Space {
    let mut random = Rng::with_seed(0);
    let exponents: Vec<f32> = (0..CANDIDATES * COLUMNS)
        .map(|_| f32::from(random.u8(0..6)))
        .collect();
    let best = |column: usize| (column % 5) as f32 + 0.1 * target as f32;
    let seconds = exponents.chunks_exact(COLUMNS).map(|exponents| {
        let off = |(column, exponent): (usize, &f32)| (exponent - best(column)).powi(2);
        let off: f32 = exponents.iter().enumerate().map(off).sum();
        1e-3 * f64::from(0.05 * off + 0.01 * random.f32()).exp()
    });
    let seconds = seconds.collect();
    let values = exponents.iter().map(|exponent| exponent.exp2()).collect();
    Space::synthetic(format!("target {target}"), COLUMNS, values, seconds)
}

fn rank(space: &Space, sources: Sources, measured: &[usize]) -> RankConfigsRequest {
    let every: Vec<usize> = (0..space.len()).collect();
    RankConfigsRequest {
        top_k: 10,
        adapt: Some(adapt(space, sources, measured)),
        ..rank_request(space.graph(), space.configs(&every))
    }
}

fn suggest(space: &Space, sources: Sources, measured: &[usize]) -> SuggestConfigsRequest {
    let RankConfigsRequest {
        graph,
        batch,
        adapt,
        ..
    } = rank(space, sources, measured);
    SuggestConfigsRequest {
        graph,
        batch,
        adapt,
        count: 1,
        ..SuggestConfigsRequest::default()
    }
}

fn drawn(count: usize, draw: u64) -> Vec<usize> {
    Rng::with_seed(draw).choose_multiple(0..CANDIDATES, count)
}

fn write(call: &str, sources: Sources, measured: usize, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let with = match sources {
        Sources::None => "",
        _ => "_with_sources",
    };
    Figure {
        name: format!("space_{call}_{measured}{with}"),
        value: times[times.len() / 2],
        unit: "ms",
        target: Target::AtMost(15.0),
        how: format!(
            "{CANDIDATES} candidates of {COLUMNS} columns at the client after {measured} measurements, others in each call, \
             {sources}; median of {}, fastest {:.1}",
            times.len(),
            times[0]
        ),
    }
    .write();
}
