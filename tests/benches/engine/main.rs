//! The benefit of evaluating every distinct row once: the engine compared with the naive evaluation of the same model,
//! its growth, the steps of a genetic search, tiles, every model of the registry, its stages, and reading modules. Ratios are of
//! one run.

mod architectures;
mod floor;
mod growth;
mod naive;
mod overhead;
mod plot;
mod reading;
mod search;
mod stages;
mod subjects;
mod tiles;
mod turns;

use hlorank_tests::prelude::*;

const PARTS: [&str; 10] = [
    "naive",
    "growth",
    "search",
    "tiles",
    "architectures",
    "overhead",
    "floor",
    "turns",
    "stages",
    "reading",
];

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    for part in chosen_parts(&PARTS) {
        match part {
            "naive" => runtime.block_on(naive::compare()),
            "growth" => runtime.block_on(growth::over_configurations_and_nodes()),
            "search" => runtime.block_on(search::steps()),
            "tiles" => runtime.block_on(tiles::rank_kernel()),
            "architectures" => runtime.block_on(architectures::compare()),
            "overhead" => runtime.block_on(overhead::of_small_requests()),
            "floor" => runtime.block_on(floor::of_calls()),
            "turns" => runtime.block_on(turns::of_small_and_large()),
            "stages" => runtime.block_on(stages::of_requests()),
            _ => reading::of_modules(),
        }
    }
}
