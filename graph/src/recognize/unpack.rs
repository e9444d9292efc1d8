use std::io::{Cursor, Read};

use crate::FileError;

/// Maximum number of bytes of a file once it is decompressed.
const MAX_UNPACKED: u64 = 1 << 30;

/// Maximum ratio of the bytes to the compressed ones, beyond [`MIN_RATIO_BYTES`].
const MAX_RATIO: u64 = 200;

/// Decompressed bytes up to which a file may have any ratio.
const MIN_RATIO_BYTES: u64 = 4 << 20;

/// Maximum window of zstd, as a power of two: that of all levels but the ultra ones.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Decompresses gzip or zstd; returns other bytes as they are. Errors name the `path`.
pub(crate) fn unpacked(path: &str, bytes: Vec<u8>) -> Result<Vec<u8>, FileError> {
    let limit = max_unpacked(bytes.len());
    let reader = match bytes[..] {
        [0x1f, 0x8b, ..] => Ok(gzip(bytes)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd(bytes),
        _ => return Ok(bytes),
    };
    let mut unpacked = Vec::new();
    // The byte beyond the limit shows that a file is too large.
    let read = reader.and_then(|reader| reader.take(limit + 1).read_to_end(&mut unpacked));
    match read {
        Ok(found) if found as u64 > limit => Err(FileError::UnpackedTooLarge {
            path: path.to_owned(),
            limit,
        }),
        Ok(_) => Ok(unpacked),
        Err(source) => Err(FileError::Compressed {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Returns the maximum number of bytes of a file that has this many compressed ones.
fn max_unpacked(compressed: usize) -> u64 {
    MIN_RATIO_BYTES
        .max(compressed as u64 * MAX_RATIO)
        .min(MAX_UNPACKED)
}

fn gzip(bytes: Vec<u8>) -> Box<dyn Read> {
    // A file may have several members, as `cat one.gz other.gz` makes it.
    Box::new(flate2::read::MultiGzDecoder::new(Cursor::new(bytes)))
}

fn zstd(bytes: Vec<u8>) -> std::io::Result<Box<dyn Read>> {
    let mut decoder = zstd::Decoder::new(Cursor::new(bytes))?;
    // The decoder allocates the window that the file claims.
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(Box::new(decoder))
}
