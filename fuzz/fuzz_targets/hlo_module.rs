//! Fuzzes [`HLO_MODULE`](hlorank_fuzz::targets::HLO_MODULE).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::HLO_MODULE);
