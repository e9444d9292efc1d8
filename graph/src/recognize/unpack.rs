use std::io::{self, Read as _};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    FrameDecoder, StreamingDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::FileError;

/// Maximum number of bytes of a file once it is decompressed.
const MAX_UNPACKED: u64 = 1 << 30;

/// Maximum ratio of the bytes to the compressed ones, beyond [`MIN_RATIO_BYTES`].
const MAX_RATIO: u64 = 200;

/// Decompressed bytes up to which a file may have any ratio.
const MIN_RATIO_BYTES: u64 = 4 << 20;

/// Maximum window of zstd: that of all levels but the ultra ones.
const MAX_WINDOW: u64 = 8 << 20;

/// Decompresses gzip or zstd; returns other bytes as they are. Errors name the `path`.
pub(crate) fn unpacked(path: &str, bytes: Vec<u8>) -> Result<Vec<u8>, FileError> {
    let limit = MIN_RATIO_BYTES
        .max(bytes.len() as u64 * MAX_RATIO)
        .min(MAX_UNPACKED);
    // The byte beyond the limit shows that a file is too large.
    let most = limit + 1;
    let mut unpacked = Vec::new();
    let read = match bytes[..] {
        // A file may have several members, as `cat one.gz other.gz` makes it.
        [0x1f, 0x8b, ..] => MultiGzDecoder::new(&bytes[..])
            .take(most)
            .read_to_end(&mut unpacked)
            .map(drop),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => read_zstd(&bytes, most, &mut unpacked),
        _ => return Ok(bytes),
    };
    let path = path.to_owned();
    match read {
        Err(source) => Err(FileError::Compressed { path, source }),
        Ok(()) if unpacked.len() as u64 > limit => Err(FileError::UnpackedTooLarge { path, limit }),
        Ok(()) => Ok(unpacked),
    }
}

/// Decompresses the frames of a file one after the other, up to `most` bytes.
fn read_zstd(mut frames: &[u8], most: u64, unpacked: &mut Vec<u8>) -> io::Result<()> {
    let mut decoder = FrameDecoder::new();
    // The decoder allocates the window that a frame claims.
    decoder.set_max_window_size(MAX_WINDOW);
    while !frames.is_empty() {
        let frame = match StreamingDecoder::new_with_decoder(&mut frames, &mut decoder) {
            Ok(frame) => frame,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let rest = frames.get(length as usize..);
                frames = rest.ok_or(io::ErrorKind::UnexpectedEof)?;
                continue;
            }
            Err(FrameDecoderError::WindowSizeTooBig { .. }) => {
                let large =
                    "its window is larger than 8 MiB; compress it without --ultra or --long";
                return Err(io::Error::other(large));
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        frame
            .take(most - unpacked.len() as u64)
            .read_to_end(unpacked)?;
        if unpacked.len() as u64 == most {
            break;
        }
        let stored = decoder.get_checksum_from_data();
        if stored.is_some() && stored != decoder.get_calculated_checksum() {
            return Err(io::Error::other("its checksum is another"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn frames_of_zstd_are_read_one_after_the_other() {
        let frame = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let two = [frame(b"one "), skipped, frame(b"other")].concat();
        assert_eq!(unpacked("file", two.clone()).unwrap(), b"one other");
        let cut = unpacked("file", two[..two.len() - 1].to_vec());
        assert!(matches!(cut, Err(FileError::Compressed { .. })));
        let bomb = frame(&vec![0; 5 << 20]);
        let limit = MIN_RATIO_BYTES;
        assert!(matches!(
            unpacked("file", bomb),
            Err(FileError::UnpackedTooLarge { limit: found, .. }) if found == limit
        ));
    }
}
