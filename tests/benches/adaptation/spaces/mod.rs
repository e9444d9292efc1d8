//! Searches in measured spaces of GPU kernels by suggestions alone: a server without models, from nothing and from what was
//! measured on other GPUs.

mod cost;
mod regret;
mod search;
mod site;
mod space;

use std::env;

use hlorank_tests::prelude::*;
use regret::{Regrets, STEPS};
use search::search;
use site::{Site, Sources};
use space::Space;

/// Limits of the regret in percent, after a number of measurements: what a study of these spaces reached offline.
const WITHOUT_SOURCES: [(usize, f64); 4] = [(10, 36.0), (20, 22.0), (50, 8.5), (100, 4.2)];
const WITH_SOURCES: [(usize, f64); 4] = [(1, 27.0), (5, 12.0), (10, 8.3), (20, 5.2)];

/// How much is searched.
struct Extent {
    seeds: u64,
    measurements: usize,
    kernels: &'static [&'static str],
}

const WHOLE: Extent = Extent {
    seeds: 5,
    measurements: 100,
    kernels: &[],
};
const QUICK: Extent = Extent {
    seeds: 2,
    measurements: 20,
    kernels: &["convolution", "convolution_milo", "pnpoly"],
};

/// Judges searches, and then what calls cost. `HLORANK_QUICK` shortens the searches.
pub(crate) async fn judge() {
    cost::judge().await;
    let Some(folder) = shared("data/gpu") else {
        return;
    };
    let extent = match env::var_os("HLORANK_QUICK") {
        Some(_) => QUICK,
        None => WHOLE,
    };
    let mut spaces = Space::read_all(&folder);
    spaces.retain(|space| {
        extent.kernels.is_empty() || extent.kernels.contains(&space.kernel.as_str())
    });
    let without = searched(&spaces, &extent, Sources::None).await;
    write_regrets("without_sources", &without, &WITHOUT_SOURCES);
    let with = searched(&spaces, &extent, Sources::OtherTargets).await;
    write_regrets("with_sources", &with, &WITH_SOURCES);
}

/// Searches every space of every kernel, prints the regrets, and returns the mean over kernels.
async fn searched(spaces: &[Space], extent: &Extent, sources: Sources) -> Regrets {
    let steps = STEPS.iter().filter(|&&step| step <= extent.measurements);
    let steps: Vec<String> = steps.map(ToString::to_string).collect();
    println!("\nRegret in %, {sources}, by number of measurements:\n");
    println!("| kernel | searches | {} |", steps.join(" | "));
    println!("| --- | {}", "---: | ".repeat(1 + steps.len()).trim_end());
    let mut kernels = Vec::new();
    for of_kernel in spaces.chunk_by(|one, other| one.kernel == other.kernel) {
        let mut searches = Vec::new();
        for seed in 0..extent.seeds {
            let mut site = Site::start(of_kernel, sources, seed).await;
            for space in of_kernel {
                let client = &mut site.client;
                let measured = search(client, space, sources, seed, extent.measurements).await;
                searches.push(Regrets::new(space, &measured));
            }
        }
        let mean = Regrets::mean(&searches);
        let (kernel, count) = (&of_kernel[0].kernel, searches.len());
        println!("| {kernel} | {count} | {} |", mean.cells());
        kernels.push(mean);
    }
    let mean = Regrets::mean(&kernels);
    println!("| mean of kernels | | {} |", mean.cells());
    mean
}

fn write_regrets(name: &str, mean: &Regrets, limits: &[(usize, f64)]) {
    for &(after, most) in limits {
        let Some(regret) = mean.after(after) else {
            continue;
        };
        Figure {
            name: format!("space_{name}_{after}"),
            value: 100.0 * regret,
            unit: "%",
            target: Target::AtMost(most),
            how: format!("regret after {after} measurements, geometric mean over kernels"),
        }
        .write();
    }
}
