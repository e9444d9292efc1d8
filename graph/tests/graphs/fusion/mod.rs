//! Fusion: the slots of a prepared module, and the kernels of its configurations.

mod forming;
mod limits;
mod measured_kernels;
mod own_modules;
mod refused;

use std::{fs, path::PathBuf};

use hlorank_graph::{FusionError, FusionProgram, HloModule, Limits};

use crate::fixture;

/// A softmax whose maximum and exponentials have several users, and a product that no fusion computes.
const SOFTMAX: &str = "HloModule softmax
max { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT m = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
ENTRY main {
 x = f32[4,8] parameter(0)
 low = f32[] constant(-inf)
 top = f32[4] reduce(x, low), dimensions={1}, to_apply=max
 wide = f32[4,8] broadcast(top), dimensions={0}
 less = f32[4,8] subtract(x, wide)
 power = f32[4,8] exponential(less)
 zero = f32[] constant(0)
 total = f32[4] reduce(power, zero), dimensions={1}, to_apply=sum
 over = f32[4,8] broadcast(total), dimensions={0}
 share = f32[4,8] divide(power, over)
 unread = f32[4,8] negate(share)
 w = f32[8,3] parameter(1)
 product = f32[4,3] dot(share, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT result = (f32[4,8], f32[4,3]) tuple(share, product)
}";
/// The first node of the entry computation of [`SOFTMAX`].
const ENTRY: u32 = 6;

fn program(text: &str) -> Result<FusionProgram, FusionError> {
    FusionProgram::new(&HloModule::read_text(text, &Limits::default()).unwrap())
}

/// The bits that fuse some slots of a program with at most 32.
fn bits(slots: &[usize]) -> [u8; 4] {
    slots
        .iter()
        .fold(0_u32, |bits, slot| bits | 1 << slot)
        .to_le_bytes()
}

/// The files of `tests/data/fusion` with an extension: modules that are prepared for the choice of fusions, or their kernels.
fn fixtures(extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(fixture("fusion")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}
