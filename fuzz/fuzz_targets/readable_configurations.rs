//! Fuzzes [`READABLE_CONFIGURATIONS`](hlorank_fuzz::targets::READABLE_CONFIGURATIONS).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::READABLE_CONFIGURATIONS);
