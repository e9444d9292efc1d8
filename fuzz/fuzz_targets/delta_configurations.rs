//! Fuzzes [`DELTA_CONFIGURATIONS`](hlorank_fuzz::targets::DELTA_CONFIGURATIONS).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::DELTA_CONFIGURATIONS);
