//! The benefit of evaluating every distinct row once: the engine compared with the naive evaluation of the same model,
//! its growth, the steps of a genetic search, tiles, every model of the registry, its stages, and reading modules. Ratios are of one run.

mod architectures;
mod growth;
mod naive;
mod plot;
mod reading;
mod search;
mod stages;
mod subjects;
mod tiles;

use hlorank_tests::prelude::*;

/// Benchmarks, of which arguments select some by name.
const PARTS: [&str; 7] = [
    "naive",
    "growth",
    "search",
    "tiles",
    "architectures",
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
            "stages" => runtime.block_on(stages::of_requests()),
            _ => reading::of_modules(),
        }
    }
}
