//! The benefit of evaluating every distinct row once: the engine compared with the naive evaluation of the same model,
//! its growth, the steps of a genetic search, tiles, fusions, schedules, every model of the registry, its stages, and
//! reading modules. Ratios are of one run.

mod architectures;
mod floor;
mod fusion;
mod growth;
mod naive;
mod overhead;
mod plot;
mod reading;
mod schedules;
mod search;
mod stages;
mod subjects;
mod tiles;
mod turns;

use hlorank_tests::prelude::*;

/// Benchmarks, of which arguments select some by name.
const PARTS: [&str; 12] = [
    "naive",
    "growth",
    "search",
    "tiles",
    "fusion",
    "schedules",
    "architectures",
    "overhead",
    "floor",
    "turns",
    "stages",
    "reading",
];

fn main() {
    // Cargo adds `--bench`.
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let chosen = |part: &&str| named.is_empty() || named.iter().any(|name| name == part);
    let runtime = Runtime::new().expect("a runtime");
    for part in PARTS.into_iter().filter(chosen) {
        match part {
            "naive" => runtime.block_on(naive::compare()),
            "growth" => runtime.block_on(growth::over_configurations_and_nodes()),
            "search" => runtime.block_on(search::steps()),
            "architectures" => runtime.block_on(architectures::compare()),
            "tiles" => runtime.block_on(tiles::rank_kernel()),
            "fusion" => runtime.block_on(fusion::steps_and_naive()),
            "schedules" => runtime.block_on(schedules::at_once_and_one_by_one()),
            "overhead" => runtime.block_on(overhead::of_small_requests()),
            "floor" => runtime.block_on(async {
                floor::of_small_calls().await;
                floor::of_a_large_call().await;
            }),
            "turns" => runtime.block_on(turns::of_small_and_large()),
            "stages" => runtime.block_on(stages::of_requests()),
            _ => reading::of_modules(),
        }
    }
}
