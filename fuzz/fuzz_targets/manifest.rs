//! Fuzzes [`MANIFEST`](hlorank_fuzz::targets::MANIFEST).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::MANIFEST);
