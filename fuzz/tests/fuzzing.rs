//! Every reader keeps its promises on its corpus and on random changes of it.

use std::fs;

use hlorank_fuzz::{Replay, Target, corpus_folder, targets};
use hlorank_server::model::Manifest;

fn replay(target: &Target) {
    assert!(Replay::from_environment().run(target) > 0);
}

#[test]
fn request_keeps_its_promises() {
    replay(&targets::REQUEST);
}

#[test]
fn hlo_module_keeps_its_promises() {
    replay(&targets::HLO_MODULE);
}

#[test]
fn hlo_text_keeps_its_promises() {
    replay(&targets::HLO_TEXT);
}

#[test]
fn configurations_keep_their_promises() {
    replay(&targets::CONFIGURATIONS);
}

#[test]
fn decision_values_keep_their_promises() {
    replay(&targets::DECISION_VALUE);
}

#[test]
fn manifest_keeps_its_promises() {
    replay(&targets::MANIFEST);
}

#[test]
fn npz_keeps_its_promises() {
    replay(&targets::NPZ);
}

#[test]
fn recognizing_keeps_its_promises() {
    replay(&targets::RECOGNIZE);
}

#[test]
fn tuning_data_keeps_its_promises() {
    replay(&targets::TUNING_DATA);
}

/// Manifests with another feature digest are rejected before most of their fields are checked.
#[test]
fn manifests_of_the_corpus_are_of_this_featurizer() {
    for manifest in ["segment.json", "whole_graph.json"] {
        let json = fs::read(corpus_folder("manifest").join(manifest)).unwrap();
        let read = Manifest::read(&json);
        assert_eq!(
            read.err().map(|error| error.to_string()),
            None,
            "write the digest of `hlorank graph features --digest` into {manifest}"
        );
    }
}
