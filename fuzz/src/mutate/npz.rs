//! Arrays in a zip file: one is changed, and the lengths and checksums around it are kept right.

use std::io::{Cursor, Read as _, Write as _};

use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::mutator::Mutator;

/// Name and npy file of an array.
type Array = (String, Vec<u8>);

/// Bytes of an array that are kept.
const MAX_ARRAY: u64 = 1 << 16;

/// Where the header of an npy file starts, after the magic string, the version and the length of the header.
const HEADER: usize = 10;

/// Changes one array of an npz file half of the time, and any bytes otherwise.
pub fn mutate_npz(input: &mut Vec<u8>, mutator: &mut Mutator) {
    let arrays = if mutator.random.bool() {
        arrays(input)
    } else {
        None
    };
    match arrays.and_then(|arrays| written(&changed(arrays, mutator))) {
        Some(changed) => *input = changed,
        None => mutator.change(input),
    }
}

fn arrays(npz: &[u8]) -> Option<Vec<Array>> {
    let mut archive = ZipArchive::new(Cursor::new(npz)).ok()?;
    let array = |position| {
        let mut entry = archive.by_index(position).ok()?;
        let mut bytes = Vec::new();
        entry
            .by_ref()
            .take(MAX_ARRAY)
            .read_to_end(&mut bytes)
            .ok()?;
        Some((entry.name().to_owned(), bytes))
    };
    let arrays: Vec<Array> = (0..).map_while(array).collect();
    (!arrays.is_empty()).then_some(arrays)
}

fn written(arrays: &[Array]) -> Option<Vec<u8>> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        // A zip file has a name only once.
        if writer.start_file(name.as_str(), options).is_ok() {
            writer.write_all(bytes).ok()?;
        }
    }
    Some(writer.finish().ok()?.into_inner())
}

fn changed(mut arrays: Vec<Array>, mutator: &mut Mutator) -> Vec<Array> {
    let at = mutator.random.usize(..arrays.len());
    let other = mutator.random.usize(..arrays.len());
    match mutator.random.u8(..12) {
        0 => drop(arrays.remove(at)),
        1 => {
            let copied = arrays[other].1.clone();
            arrays[at].1 = copied;
        }
        choice => change_array(&mut arrays[at].1, choice < 6, mutator),
    }
    arrays
}

/// Changes the header of an npy file, whose length is kept right, or the values after it.
fn change_array(npy: &mut Vec<u8>, in_header: bool, mutator: &mut Mutator) {
    let length = npy
        .first_chunk::<HEADER>()
        .map(|start| u16::from_le_bytes([start[8], start[9]]));
    let end = HEADER + usize::from(length.unwrap_or_default());
    if npy.len() < end {
        return mutator.change(npy);
    }
    let mut values = npy.split_off(end);
    let mut header = npy.split_off(HEADER);
    mutator.change(if in_header { &mut header } else { &mut values });
    npy[HEADER - 2..].copy_from_slice(
        &u16::try_from(header.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    npy.append(&mut header);
    npy.append(&mut values);
}
