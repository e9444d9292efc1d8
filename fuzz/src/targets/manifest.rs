use hlorank_server::model::{Manifest, ModelKind};

use crate::{Target, mutate::mutate_bytes, reading::check_error};

/// `manifest.json` of an artifact. An accepted manifest is consistent, and reads the same however its JSON is written.
pub const MANIFEST: Target = Target {
    name: "manifest",
    mutate: mutate_bytes,
    read,
};

fn read(input: &[u8]) {
    match Manifest::read(input) {
        Ok(manifest) => check(&manifest, input),
        Err(error) => check_error(&error),
    }
}

fn check(manifest: &Manifest, input: &[u8]) {
    assert!(manifest.version > 0);
    match &manifest.kind {
        ModelKind::Segment(settings) => {
            let largest = *settings.buckets.last().expect("a bucket");
            for nodes in [1, 2, 3, 4, 5, largest - 1, largest] {
                let bucket = settings.bucket(nodes);
                assert!(
                    bucket >= nodes && bucket <= largest && bucket.is_multiple_of(4),
                    "{nodes} in {bucket}"
                );
            }
        }
        ModelKind::WholeGraph(settings) => assert!(settings.chunk_configs > 0),
        ModelKind::Absent => panic!("no manifest on disk says so"),
    }
    // `Value` rejects numbers out of range, also in fields that a manifest ignores.
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(input) {
        let mut written =
            Manifest::read(value.to_string().as_bytes()).expect("a manifest that is written again");
        // Writing a float may change its last digit.
        written
            .measured_quality
            .clone_from(&manifest.measured_quality);
        assert_eq!(
            format!("{written:?}"),
            format!("{manifest:?}"),
            "written again"
        );
    }
}
