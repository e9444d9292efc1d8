//! Fuzzes [`CONFIGURATIONS`](hlorank_fuzz::targets::CONFIGURATIONS).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::CONFIGURATIONS);
