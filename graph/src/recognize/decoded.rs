use std::borrow::Cow;

/// Number of bytes by which text is told from other data.
const LOOKED_AT: usize = 4096;

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
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
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
