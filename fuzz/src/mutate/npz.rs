//! Arrays in a zip file: their names, headers and numbers are changed, and the checksums around them with them.

use std::io::{Cursor, Read as _, Write as _};

use fastrand::Rng;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::{bytes, changes, number, tokens::mutate_text};

/// An array: name and npy file.
type Array = (String, Vec<u8>);

/// Bytes of an array beyond which a part of it is enough.
const MAX_ARRAY: u64 = 1 << 16;

/// Where the header of an npy file starts, after magic, version and its length.
const HEADER: usize = 10;

/// Changes an npz file.
pub fn mutate_npz(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let changed = arrays(input).and_then(|mut arrays| {
        let others = self::arrays(other).unwrap_or_default();
        for _ in 0..changes(random) {
            mutate_arrays(&mut arrays, &others, random);
        }
        write(&arrays, random.u8(..8) == 0)
    });
    match changed {
        Some(changed) if random.u8(..8) > 0 => *input = changed,
        _ => bytes::mutate_once(input, other, random),
    }
}

fn arrays(npz: &[u8]) -> Option<Vec<Array>> {
    let mut archive = ZipArchive::new(Cursor::new(npz)).ok()?;
    let mut array = |position: usize| {
        let mut entry = archive.by_index(position).ok()?;
        let mut bytes = Vec::new();
        entry.by_ref().take(MAX_ARRAY).read_to_end(&mut bytes).ok()?;
        Some((entry.name().to_owned(), bytes))
    };
    Some((0..).map_while(&mut array).collect())
}

fn write(arrays: &[Array], compressed: bool) -> Option<Vec<u8>> {
    let method = if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options =
        SimpleFileOptions::default().compression_method(method).compression_level(compressed.then_some(1));
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        // A name that is there already is left out.
        if writer.start_file(name.as_str(), options).is_ok() {
            writer.write_all(bytes).ok()?;
        }
    }
    Some(writer.finish().ok()?.into_inner())
}

fn mutate_arrays(arrays: &mut Vec<Array>, others: &[Array], random: &mut Rng) {
    if arrays.is_empty() {
        arrays.extend_from_slice(others);
        return;
    }
    let at = random.usize(..arrays.len());
    match random.u8(..12) {
        0 => drop(arrays.remove(at)),
        1 => {
            let bytes = arrays[random.usize(..arrays.len())].1.clone();
            arrays[at].1 = bytes;
        }
        2 => match others.iter().find(|(name, _)| *name == arrays[at].0) {
            Some((_, bytes)) => arrays[at].1.clone_from(bytes),
            None => drop(arrays.remove(at)),
        },
        3 => {
            if let Some(taken) = (!others.is_empty()).then(|| others[random.usize(..others.len())].clone()) {
                arrays.push(taken);
            }
        }
        4..=6 => mutate_header(&mut arrays[at].1, random),
        _ => mutate_values(&mut arrays[at].1, random),
    }
}

/// Changes type, order or shape; the length of the header mostly stays right.
fn mutate_header(npy: &mut Vec<u8>, random: &mut Rng) {
    let Some(length) =
        npy.get(8..HEADER).map(|length| usize::from(u16::from_le_bytes([length[0], length[1]])))
    else {
        return;
    };
    let Some(header) = npy.get(HEADER..HEADER + length) else { return };
    let text = String::from_utf8_lossy(header).into_owned();
    let text = match random.u8(..6) {
        0 => ["<i4", "<i8", "|u1", "<f4", "<f8", "|i1", ">f4", "<U8", "|O", "|V0"].iter().fold(
            text.clone(),
            |changed, kind| {
                let to = ["<i4", "<i8", "|u1", "<f4", "<f8", "|i1"][random.usize(..6)];
                if changed == text { text.replace(kind, to) } else { changed }
            },
        ),
        1 => text.replace("'shape': (", &format!("'shape': ({}, ", number(random))),
        2 => text.replace("False", "True"),
        _ => {
            let mut changed = text.into_bytes();
            mutate_text(
                &mut changed,
                b"'descr': '<f8', 'shape': (0, 18446744073709551615), [('a', '<f4', (2,))]",
                random,
            );
            String::from_utf8_lossy(&changed).into_owned()
        }
    };
    let written =
        if random.u8(..16) == 0 { random.u16(..) } else { u16::try_from(text.len()).unwrap_or(u16::MAX) };
    npy.splice(8..HEADER + length, written.to_le_bytes().into_iter().chain(text.into_bytes()));
}

/// Changes numbers behind the header.
fn mutate_values(npy: &mut Vec<u8>, random: &mut Rng) {
    let length =
        npy.get(8..HEADER).map_or(0, |length| usize::from(u16::from_le_bytes([length[0], length[1]])));
    let start = (HEADER + length).min(npy.len());
    let width = [1, 4, 8][random.usize(..3)];
    let values = (npy.len() - start) / width;
    if values == 0 {
        npy.extend_from_slice(&number(random).to_le_bytes());
        return;
    }
    let at = start + random.usize(..values) * width;
    let value: Vec<u8> = match (width, random.u8(..4)) {
        (4, 0) => [f32::NAN, f32::INFINITY, -0.0, 1e20, 0.5, -1.0][random.usize(..6)].to_le_bytes().to_vec(),
        (4, 1) => f32::from(random.u8(..8)).to_le_bytes().to_vec(),
        (8, 0) => [f64::NAN, f64::INFINITY, -0.0, 1e300, 0.5, -1.0][random.usize(..6)].to_le_bytes().to_vec(),
        _ => number(random).to_le_bytes()[..width].to_vec(),
    };
    match random.u8(..8) {
        0 => npy.truncate(at),
        1 => drop(npy.splice(at..at, value)),
        _ => npy[at..at + width].copy_from_slice(&value),
    }
}
