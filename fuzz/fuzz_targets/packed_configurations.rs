//! Fuzzes [`PACKED_CONFIGURATIONS`](hlorank_fuzz::targets::PACKED_CONFIGURATIONS).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::PACKED_CONFIGURATIONS);
