//! Runs a target under libFuzzer.

use fastrand::Rng;
use libfuzzer_sys::fuzzer_mutate;

use crate::{Target, mutate::Mutator};

/// Defines the functions that libFuzzer calls for a target.
#[macro_export]
macro_rules! libfuzzer {
    ($target:expr) => {
        libfuzzer_sys::fuzz_target!(|input: &[u8]| $target.check(input));
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                      size: usize,
                                      _max_size: usize,
                                      seed: u32| {
            $crate::libfuzzer::mutate(&$target, data, size, seed)
        });
    };
}

/// Changes the first `size` bytes of `data`, and returns the size of the changed input.
pub fn mutate(target: &Target, data: &mut [u8], size: usize, seed: u32) -> usize {
    let mut input = data[..size].to_vec();
    let mut mutator = Mutator {
        random: Rng::with_seed(seed.into()),
        change_bytes,
    };
    (target.mutate)(&mut input, &mut mutator);
    input.truncate(data.len());
    data[..input.len()].copy_from_slice(&input);
    input.len()
}

/// Changes bytes as libFuzzer does, which knows what their reader compared them with. They grow by at most 64.
fn change_bytes(bytes: &mut Vec<u8>, _random: &mut Rng) {
    let size = bytes.len();
    bytes.resize(size + 64, 0);
    let changed = fuzzer_mutate(bytes, size, size + 64);
    bytes.truncate(changed);
}
