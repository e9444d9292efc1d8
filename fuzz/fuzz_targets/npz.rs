//! Fuzzes [`NPZ`](hlorank_fuzz::targets::NPZ).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::NPZ);
