//! Fuzzes [`TUNING_DATA`](hlorank_fuzz::targets::TUNING_DATA).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::TUNING_DATA);
