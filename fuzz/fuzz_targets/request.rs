//! Fuzzes [`REQUEST`](hlorank_fuzz::targets::REQUEST).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::REQUEST);
