//! Fuzzes [`DECISION_VALUE`](hlorank_fuzz::targets::DECISION_VALUE).
#![no_main]

hlorank_fuzz::libfuzzer!(hlorank_fuzz::targets::DECISION_VALUE);
