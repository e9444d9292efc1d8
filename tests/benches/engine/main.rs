//! What evaluating every distinct thing once is worth: the engine beside the naive evaluation of the same model, its
//! growth, the steps of a genetic search, tiles, and where the time goes. Ratios are of one run.

mod growth;
mod naive;
mod overhead;
mod plot;
mod search;
mod stages;
mod subjects;
mod tiles;

use tokio::runtime::Runtime;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        naive::compare().await;
        growth::over_configurations().await;
        growth::over_nodes().await;
        search::steps().await;
        tiles::rank_kernel().await;
        overhead::of_small_requests().await;
        stages::of_requests().await;
    });
}
