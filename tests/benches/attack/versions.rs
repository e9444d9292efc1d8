//! A model version that takes the server's time and memory when it is loaded.

use std::{fs, path::PathBuf};

use hlorank_tests::{
    TILE_MODEL,
    attackers::{publish_endless, publish_zip_bomb},
};

use crate::site::Site;

/// Versions that are removed when this is dropped.
pub(crate) struct PublishedVersion(Vec<PathBuf>);

/// The models get no other version.
const MODELS: [&str; 2] = [TILE_MODEL, "layout-xla-cpu"];
const VERSION: u64 = 1_000;

/// Hours of a loop.
const STEPS: i64 = 1 << 40;

const ZIP_BOMB_BYTES: u64 = 2 << 30;

impl PublishedVersion {
    /// Publishes a version whose golden cases never end, and one whose golden cases decompress to 2 GiB.
    pub(crate) fn endless(site: &Site) -> Self {
        Self(vec![
            publish_endless(&site.artifacts, MODELS[0], VERSION, STEPS),
            publish_zip_bomb(&site.artifacts, MODELS[1], VERSION, ZIP_BOMB_BYTES),
        ])
    }
}

impl Drop for PublishedVersion {
    fn drop(&mut self) {
        // They may be gone with their folder.
        self.0
            .iter()
            .for_each(|version| drop(fs::remove_dir_all(version)));
    }
}
