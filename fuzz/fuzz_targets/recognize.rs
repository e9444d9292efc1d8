//! Fuzzes [`RECOGNIZE`](hlorank_fuzz::targets::RECOGNIZE).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::RECOGNIZE);
