//! Every reader keeps its promises for a while.

use std::fs;

use hlorank_fuzz::{Environment, Target, corpus_folder, run, targets};
use hlorank_server::model::Manifest;

fn fuzz(target: &Target) {
    let report = run(target, &Environment::read());
    println!("{report}");
    assert!(report.executions > 0);
}

#[test]
fn request_keeps_its_promises() {
    fuzz(&targets::REQUEST);
}

#[test]
fn hlo_module_keeps_its_promises() {
    fuzz(&targets::HLO_MODULE);
}

#[test]
fn hlo_text_keeps_its_promises() {
    fuzz(&targets::HLO_TEXT);
}

#[test]
fn packed_configurations_keep_their_promises() {
    fuzz(&targets::PACKED_CONFIGURATIONS);
}

#[test]
fn delta_configurations_keep_their_promises() {
    fuzz(&targets::DELTA_CONFIGURATIONS);
}

#[test]
fn manifest_keeps_its_promises() {
    fuzz(&targets::MANIFEST);
}

#[test]
fn npz_keeps_its_promises() {
    fuzz(&targets::NPZ);
}

#[test]
fn tuning_data_keeps_its_promises() {
    fuzz(&targets::TUNING_DATA);
}

/// Else nothing gets past the check of the digest of features.
#[test]
fn manifests_of_the_corpus_are_of_this_featurizer() {
    for manifest in ["segment.json", "whole_graph.json"] {
        let json = fs::read(corpus_folder("manifest").join(manifest)).unwrap();
        let read = Manifest::read(&json);
        assert!(read.is_ok(), "{}; run `cargo run -p hlorank-fuzz --example corpus`", read.unwrap_err());
    }
}
