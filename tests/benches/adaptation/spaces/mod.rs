//! Searches in measured spaces of GPU kernels by suggestions alone: a server without models, from nothing and from what was
//! measured on other GPUs.

mod cost;
mod regret;
mod search;
mod site;
mod space;
mod table;

use std::env;

use hlorank_tests::prelude::*;
use regret::{Regrets, STEPS};
use search::Search;
use site::{Site, Sources};
use space::Space;
use table::Table;

/// Limits of the regret in percent, after a number of measurements: what a study of these spaces reached offline.
const WITHOUT_SOURCES: [(usize, f64); 4] = [(10, 36.0), (20, 22.0), (50, 8.5), (100, 4.2)];
const WITH_SOURCES: [(usize, f64); 4] = [(1, 27.0), (5, 12.0), (10, 8.3), (20, 5.2)];
/// How many times the regret without sources that with harmful ones may be.
const HARM: f64 = 1.1;
/// The kernel whose sources are harmful.
const HARMED: &str = "convolution";
/// The kernel that was measured on GPUs of two vendors.
const OF_TWO_VENDORS: &str = "convolution_milo";

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
    let with = searched(&spaces, &extent, Sources::OtherTargets).await;
    spaces.retain(|space| space.kernel == HARMED);
    let shuffled = searched(&spaces, &extent, Sources::Shuffled).await;
    if let Ok(others) = fs::read_to_string(repository("tests/results/tuners.txt")) {
        println!("\nOther tuners:\n\n{others}");
    }
    write_regrets("without_sources", &without, &WITHOUT_SOURCES);
    write_regrets("with_sources", &with, &WITH_SOURCES);
    write_harm(&without, &shuffled);
}

/// Searches every space of every kernel, and prints the regrets.
async fn searched(spaces: &[Space], extent: &Extent, sources: Sources) -> Table {
    let mut table = Table::default();
    for of_kernel in spaces.chunk_by(|one, other| one.kernel == other.kernel) {
        let kernel = &of_kernel[0].kernel;
        for seed in 0..extent.seeds {
            let mut site = Site::start(of_kernel, sources, seed).await;
            for space in of_kernel {
                let mut search = Search::new(space, seed, sources);
                search.run(&mut site.client, extent.measurements).await;
                table.add(kernel, Regrets::new(space, &search.measured));
            }
        }
    }
    table.print(sources, extent.measurements);
    table
}

fn write_regrets(name: &str, table: &Table, limits: &[(usize, f64)]) {
    for &(after, most) in limits {
        let Some(regret) = table.mean().after(after) else {
            continue;
        };
        let across = table.kernel(OF_TWO_VENDORS).after(after);
        Figure {
            name: format!("space_{name}_{after}"),
            value: 100.0 * regret,
            unit: "%",
            target: Target::AtMost(most),
            how: format!(
                "regret after {after} measurements, {}; {:.1} for {OF_TWO_VENDORS}",
                table.extent(),
                100.0 * across.unwrap_or(f64::NAN)
            ),
        }
        .write();
    }
}

fn write_harm(without: &Table, shuffled: &Table) {
    let (without, shuffled) = (without.kernel(HARMED), shuffled.mean());
    let ratios = STEPS.iter().filter_map(|&after| {
        let ratio = shuffled.after(after)? / without.after(after)?;
        (after >= 10).then_some(ratio)
    });
    let ratios: Vec<f64> = ratios.collect();
    let listed: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    Figure {
        name: "space_harm_of_shuffled_sources".to_owned(),
        value: ratios.iter().sum::<f64>() / ratios.len() as f64,
        unit: "x",
        target: Target::AtMost(HARM),
        how: format!(
            "regret with sources of {HARMED} whose times are shuffled, over that without; mean of those after 10 measurements \
             and more: {}",
            listed.join(", ")
        ),
    }
    .write();
}
