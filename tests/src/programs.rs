//! Programs before fusion, and random fusions of them.

use fastrand::Rng;
use hlorank_graph::{FusionBatch, Graph, HloModule, Limits, Task};

use crate::fixture;

/// Reads the serialized module of a program of `tests/data/fusion`.
pub fn program_module(name: &str) -> Vec<u8> {
    let path = fixture(&format!("fusion/{name}.hlo_module.pb"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a program of `tests/data/fusion`.
pub fn program_graph(name: &str) -> Graph {
    let bytes = program_module(name);
    let module = HloModule::read(&bytes, &Limits::default()).expect("a module");
    module
        .into_graph(Task::Fusion, Vec::new())
        .expect("a program before fusion")
}

/// Returns random fusions of a program, each of which fuses a share of the slots.
pub fn random_fusions(program: &Graph, count: usize, random: &mut Rng) -> FusionBatch {
    let slots = program.configurable().len();
    let fusion = |_| {
        let share = random.f64();
        (0..slots).map(|_| random.f64() < share).collect()
    };
    let bits: Vec<Vec<bool>> = (0..count).map(fusion).collect();
    FusionBatch::from_bits(slots, &bits, &Limits::default()).expect("some fusions")
}

/// Returns fusions that each differ from one of a batch in a few slots.
pub fn fusion_neighbours(
    of: &FusionBatch,
    config: usize,
    count: usize,
    flips: usize,
    random: &mut Rng,
) -> FusionBatch {
    let mut fused = Vec::new();
    for _ in 0..count {
        let mut row = of.row(config).to_vec();
        for _ in 0..flips {
            let slot = random.usize(..of.slots());
            row[slot / 8] ^= 1 << (slot % 8);
        }
        fused.extend(row);
    }
    FusionBatch::new(count, of.slots(), fused, &Limits::default()).expect("some fusions")
}
