//! Files of an artifact that are larger than allowed, or would be when they are decompressed, are rejected before they
//! take memory.

use hlorank_tests::prelude::*;

use crate::{attacked::Attacked, files::npz};

const MODEL: &str = SMALL_TILE_MODEL;

/// Size of the array of a bomb.
const ARRAY_BYTES: u64 = 512 << 20;

/// Maximum bytes of golden cases, and of their arrays.
const GOLDEN_BYTES: usize = (16 << 20) + (64 << 20);

/// Returns an npz file of a few hundred kilobytes with one huge array.
fn bomb() -> Vec<u8> {
    npz(&[
        ("0/node_opcode", "|u1", "(536870912,)", ARRAY_BYTES),
        ("0/node_feat", "<f4", "(0, 140)", 0),
        ("0/config_feat", "<f4", "(0, 24)", 0),
    ])
}

/// Returns a bomb that claims a small array.
fn lying_bomb() -> Vec<u8> {
    let mut bomb = bomb();
    let header = bomb
        .windows(4)
        .position(|bytes| bytes == b"PK\x01\x02")
        .unwrap();
    let size: [u8; 4] = bomb[header + 24..][..4].try_into().unwrap();
    assert!(u64::from(u32::from_le_bytes(size)) > ARRAY_BYTES);
    bomb[header + 24..][..4].copy_from_slice(&4096_u32.to_le_bytes());
    bomb
}

fn with_golden(artifacts: &Artifacts, folder: &Path, golden: &[u8]) {
    artifacts.edit_file(folder, "golden.npz", |bytes| *bytes = golden.to_vec());
}

fn with_size(folder: &Path, file: &str, bytes: u64) {
    let file = File::options().write(true).open(folder.join(file));
    file.unwrap().set_len(bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_too_large_are_rejected_before_they_take_memory() {
    type Spoil = fn(&Artifacts, &Path);
    let cases: [(&str, &str, Spoil); 5] = [
        ("a bomb", "FILE_TOO_LARGE", |artifacts, folder| {
            with_golden(artifacts, folder, &bomb());
        }),
        ("a lying bomb", "GOLDEN_UNREADABLE", |artifacts, folder| {
            with_golden(artifacts, folder, &lying_bomb());
        }),
        ("golden cases", "FILE_TOO_LARGE", |_, folder| {
            with_size(folder, "golden.npz", 17 << 20);
        }),
        ("a model", "FILE_TOO_LARGE", |_, folder| {
            with_size(folder, "head.onnx", 257 << 20);
        }),
        ("a manifest", "FILE_TOO_LARGE", |_, folder| {
            with_size(folder, "manifest.json", 2 << 20);
        }),
    ];
    let artifacts = Artifacts::copy();
    let attacked = Attacked::start(&[&artifacts.flag()]).await;
    let server = &attacked.server;
    let first = server.client().await.get_model(MODEL, None).await;
    let first = first.unwrap().version;
    // A valid version first: its memory is not the bombs'.
    artifacts.publish(MODEL, first + 1, |_| ());
    server.until(MODEL, first + 1, ModelState::Serving).await;
    let before = server.resident_bytes();
    reset_peak(server.id());
    for (version, (what, reason, spoil)) in (first + 2..).zip(cases) {
        let folder = artifacts.publish(MODEL, version, |folder| spoil(&artifacts, folder));
        let rejected = server.until(MODEL, version, ModelState::Rejected).await;
        let rejection = rejected.rejection.unwrap();
        assert_eq!(rejection.reason, reason, "{what}: {}", rejection.message);
        fs::remove_dir_all(folder).unwrap();
        let took = peak_bytes(server.id()).saturating_sub(before);
        println!("{what}: {} KiB more; {}", took >> 10, rejection.message);
        let allowed = with_fragments(GOLDEN_BYTES);
        assert!(took < allowed, "{what} took {took} bytes");
    }
}
