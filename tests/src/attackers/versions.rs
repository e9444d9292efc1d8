//! Model versions that take the server's time or memory when it loads them.

use std::{
    io::{self, Cursor, Read as _, Write as _},
    path::PathBuf,
};

use zip::{ZipArchive, ZipWriter, write::SimpleFileOptions};

use crate::{Artifacts, onnx};

/// Publishes a version of a segment model whose encoder runs a loop of this number of steps before it answers.
#[must_use]
pub fn publish_endless(artifacts: &Artifacts, name: &str, version: u64, steps: i64) -> PathBuf {
    artifacts.publish(name, version, |folder| {
        artifacts.edit_file(folder, "encoder.onnx", |model| {
            onnx::loop_above(model, f32::MIN, steps);
        });
    })
}

/// Publishes a version whose golden cases decompress to this number of bytes.
#[must_use]
pub fn publish_zip_bomb(artifacts: &Artifacts, name: &str, version: u64, bytes: u64) -> PathBuf {
    artifacts.publish(name, version, |folder| {
        artifacts.edit_file(folder, "golden.npz", |golden| {
            *golden = swell(golden, bytes);
        });
    })
}

/// Replaces the scores of the first golden case by zeros that take this number of bytes.
fn swell(golden: &[u8], bytes: u64) -> Vec<u8> {
    const SCORES: &str = "0/score.npy";
    let mut cases = ZipArchive::new(Cursor::new(golden)).expect("golden cases");
    let mut swollen = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..cases.len() {
        let entry = cases.by_index_raw(index).expect("an entry");
        if entry.name() != SCORES {
            swollen.raw_copy_file(entry).expect("a vector grows");
        }
    }
    swollen
        .start_file(SCORES, SimpleFileOptions::default().large_file(true))
        .expect("a vector grows");
    swollen
        .write_all(&npy_header(bytes / 4))
        .expect("a vector grows");
    io::copy(&mut io::repeat(0).take(bytes), &mut swollen).expect("a vector grows");
    swollen.finish().expect("a vector grows").into_inner()
}

/// Returns the header of this number of float32 numbers in the format of numpy.
fn npy_header(count: u64) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}\n");
    let length = u16::try_from(header.len()).expect("a short header");
    [
        b"\x93NUMPY\x01\0",
        &length.to_le_bytes()[..],
        header.as_bytes(),
    ]
    .concat()
}
