//! Names formats that are not read, by the rules of `formats.json`.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Read as _},
    sync::LazyLock,
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    FrameDecoder, StreamingDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use serde::Deserialize;

use super::protobuf::{has_path, is_message};
use crate::{FileError, UnreadContent, shortened};

/// The rules and advice of `formats.json`.
#[derive(Deserialize)]
struct Formats {
    /// What to do, by key.
    advice: HashMap<String, String>,
    /// The first format with a rule that fits is the one.
    formats: Vec<Format>,
}

#[derive(Deserialize)]
struct Format {
    name: String,
    /// Key of the advice.
    #[serde(rename = "do")]
    advice: String,
    when: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Rule {
    /// Bytes (as Latin-1) at a place. Text is compared at its start alone.
    Bytes { at: usize, bytes: String },
    /// Bytes anywhere in the first bytes of data that is not text.
    Inside { inside: String },
    /// Start of the first line that is not blank, in lower case.
    First { first: String },
    /// Start of any of the first lines.
    Line { line: String },
    /// A part of the first lines.
    Text { text: String },
    /// Paths of field numbers in a protobuf message, all of which exist: `1.2` is text, `1.2*` are bytes, `1.2#` is a number.
    Fields { fields: Vec<String> },
    /// End of the name of a file in a zip archive.
    Entry { entry: String },
}

/// The part of content that the rules look at.
#[derive(Default)]
pub(super) struct Sample<'a> {
    bytes: &'a [u8],
    /// The first lines, if it is text.
    text: Option<&'a str>,
    /// Those of them that are not blank, without the white space around them.
    lines: Vec<&'a str>,
    /// Names of the files in it, if it is a zip archive.
    entries: &'a [String],
}

/// Number of bytes that the rules look at.
const LOOKED_AT: usize = 64 << 10;

static FORMATS: LazyLock<Formats> = LazyLock::new(|| {
    serde_json::from_str(include_str!("formats.json"))
        .expect("the table is valid, which tests prove")
});

impl<'a> Sample<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        Self {
            bytes: text.as_bytes(),
            text: Some(text),
            lines,
            entries: &[],
        }
    }

    fn binary(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    fn zip(entries: &'a [String]) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }
}

/// Returns the first format that fits.
pub(super) fn find(sample: &Sample<'_>) -> Option<UnreadContent> {
    let format = FORMATS
        .formats
        .iter()
        .find(|format| format.when.iter().any(|rule| rule.fits(sample)))?;
    Some(found(format.name.clone(), &format.advice))
}

/// Returns what content is, with the advice of a key.
pub(super) fn found(name: impl Into<String>, advice: &str) -> UnreadContent {
    let advice = FORMATS.advice.get(advice).cloned().unwrap_or_default();
    UnreadContent {
        name: name.into(),
        advice,
    }
}

impl Rule {
    fn fits(&self, sample: &Sample<'_>) -> bool {
        let is_binary = sample.text.is_none();
        match self {
            // Text may contain any few bytes at a place by chance, while a binary format is known by
            // them.
            Self::Bytes { at, bytes } => {
                let place = sample.bytes.get(*at..).filter(|_| *at == 0 || is_binary);
                place.is_some_and(|place| place.starts_with(&latin_1(bytes)))
            }
            Self::Inside { inside } => {
                let start = &sample.bytes[..sample.bytes.len().min(LOOKED_AT)];
                let inside = latin_1(inside);
                is_binary && start.windows(inside.len()).any(|window| window == inside)
            }
            // `get` is `None` if the word ends inside a character of the line, which then is not the
            // word.
            Self::First { first } => {
                let line = sample.lines.first();
                let start = line.and_then(|line| line.get(..first.len()));
                start.is_some_and(|start| start.eq_ignore_ascii_case(first))
            }
            Self::Line { line } => sample.lines.iter().any(|found| found.starts_with(line)),
            Self::Text { text } => sample.text.is_some_and(|found| found.contains(text)),
            Self::Fields { fields } => {
                is_binary && fields.iter().all(|path| has_path(sample.bytes, path))
            }
            Self::Entry { entry } => sample.entries.iter().any(|found| found.ends_with(entry)),
        }
    }
}

fn latin_1(text: &str) -> Vec<u8> {
    text.chars()
        .filter_map(|character| u8::try_from(u32::from(character)).ok())
        .collect()
}

/// Key of the advice for content of which no more is known.
const GENERAL: &str = "hlo";

/// Number of bytes of unknown data that a message shows.
const SHOWN_BYTES: usize = 8;

/// Names the content of a file that was expected to hold something else than a module.
pub fn content_name(bytes: &[u8]) -> String {
    name_of(bytes).name
}

/// Names bytes that hold no module.
pub(crate) fn name_of(bytes: &[u8]) -> UnreadContent {
    if bytes.is_empty() {
        return found("an empty file", GENERAL);
    }
    known(bytes).unwrap_or_else(|| unknown(bytes))
}

/// Names bytes of a known format.
pub(super) fn known(bytes: &[u8]) -> Option<UnreadContent> {
    let text = decoded(bytes);
    let sample = if is_text(text.as_bytes()) {
        Sample::text(&text)
    } else {
        Sample::binary(bytes)
    };
    find(&sample)
}

/// Names a zip archive by the names of the files in it.
pub(crate) fn name_of_zip(entries: &[String]) -> UnreadContent {
    find(&Sample::zip(entries)).unwrap_or_else(|| {
        let shown: Vec<String> = entries
            .iter()
            .take(3)
            .map(|entry| shortened(entry))
            .collect();
        let more = if entries.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        let name = format!(
            "a zip archive of {} files ({}{more})",
            entries.len(),
            shown.join(", ")
        );
        found(name, "zip")
    })
}

fn unknown(bytes: &[u8]) -> UnreadContent {
    let text = decoded(bytes);
    let name = if is_text(text.as_bytes()) {
        if let Some(separator) = separator_of_table(&text) {
            let name = format!("a table whose columns are separated by {separator}");
            return found(name, "json");
        }
        match text.lines().map(str::trim).find(|line| !line.is_empty()) {
            None => "white space alone".to_owned(),
            Some(line) => format!(
                "text without an HLO module, which begins with `{}`",
                shortened(line)
            ),
        }
    } else if is_message(bytes) {
        "a protobuf message without the computations of an HLO module".to_owned()
    } else {
        let shown = bytes.iter().take(SHOWN_BYTES);
        let shown: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
        format!(
            "data of an unknown format, which begins with the bytes {}",
            shown.join(" ")
        )
    };
    found(name, GENERAL)
}

/// Returns what separates the columns of a table: all first lines have as many of them as the first.
fn separator_of_table(text: &str) -> Option<&'static str> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(3);
    let lines: Vec<&str> = lines.collect();
    let separators = [(';', "semicolons"), ('\t', "tabs"), (',', "commas")];
    let found = separators.into_iter().find(|(separator, _)| {
        let mut counts = lines.iter().map(|line| line.matches(*separator).count());
        let first = counts.next().unwrap_or(0);
        first > 0 && lines.len() > 1 && counts.all(|count| count == first)
    });
    found.map(|(_, name)| name)
}

/// Number of first bytes that decide whether a file is text.
const TEXT_START: usize = 4096;

/// Returns the text of UTF-8, with or without a byte order mark, or of UTF-16. Bytes that are no text become `�`.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        // UTF-16 without a mark: HLO text begins with ASCII, of which every second byte is then 0.
        [b' '..=b'~', 0, b' '..=b'~', 0, ..] => utf_16(bytes, u16::from_le_bytes),
        [0, b' '..=b'~', 0, b' '..=b'~', ..] => utf_16(bytes, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes),
    }
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'_, str> {
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    let characters =
        char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER));
    Cow::Owned(characters.collect())
}

/// Returns whether the first bytes are those of text: no control characters except for white space and escapes of
/// terminals.
fn is_text(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(TEXT_START)];
    // Some invalid sequences do not make a log binary. The last one may also be a character that
    // the end of `start` cuts.
    start
        .iter()
        .all(|byte| matches!(byte, b'\t'..=b'\r' | 0x1b | b' '..=b'~' | 0x80..))
        && start
            .utf8_chunks()
            .filter(|chunk| !chunk.invalid().is_empty())
            .count()
            <= start.len() / 64 + 1
}

/// Maximum number of bytes of a file once it is decompressed.
const MAX_UNPACKED: u64 = 1 << 30;

/// Maximum ratio of the bytes to the compressed ones, beyond [`MIN_RATIO_BYTES`].
const MAX_RATIO: u64 = 200;

/// Decompressed bytes up to which a file may have any ratio.
const MIN_RATIO_BYTES: u64 = 4 << 20;

/// Maximum window of zstd: that of all levels but the ultra ones.
const MAX_WINDOW: u64 = 8 << 20;

/// Returns how many bytes this many compressed ones may hold.
pub(crate) fn most_unpacked(compressed: u64) -> u64 {
    let in_proportion = compressed.saturating_mul(MAX_RATIO);
    in_proportion.clamp(MIN_RATIO_BYTES, MAX_UNPACKED)
}

/// Decompresses gzip or zstd; returns other bytes as they are. Errors name the `path`.
pub(crate) fn unpacked(path: &str, bytes: Vec<u8>) -> Result<Vec<u8>, FileError> {
    let limit = most_unpacked(bytes.len() as u64);
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
        let limit = MIN_RATIO_BYTES;
        let zeros = |count: u64| {
            let count = usize::try_from(count).unwrap();
            unpacked("file", frame(&vec![0; count]))
        };
        assert_eq!(zeros(limit).unwrap().len() as u64, limit);
        assert!(matches!(
            zeros(limit + 1),
            Err(FileError::UnpackedTooLarge { limit: found, .. }) if found == limit
        ));
    }
}
