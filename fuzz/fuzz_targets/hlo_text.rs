//! Fuzzes [`HLO_TEXT`](hlorank_fuzz::targets::HLO_TEXT).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::HLO_TEXT);
