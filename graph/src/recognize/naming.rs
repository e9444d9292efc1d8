use super::{
    decoded::{decoded, is_text},
    formats::{Sample, find, found},
    protobuf::is_message,
};
use crate::{Found, shortened};

/// Key of the advice for content of which no more is known.
const GENERAL: &str = "hlo";

/// Number of bytes of unknown data that a message shows.
const SHOWN_BYTES: usize = 8;

/// Names bytes that hold no module.
pub(crate) fn name_of(bytes: &[u8]) -> Found {
    if bytes.is_empty() {
        return found("an empty file", GENERAL);
    }
    known(bytes).unwrap_or_else(|| unknown(bytes))
}

/// Names bytes of a known format.
pub(super) fn known(bytes: &[u8]) -> Option<Found> {
    let text = decoded(bytes);
    let sample = if is_text(text.as_bytes()) {
        Sample::text(&text)
    } else {
        Sample::binary(bytes)
    };
    find(&sample)
}

/// Names a zip archive by the names of the files in it.
pub(crate) fn name_of_zip(entries: &[String]) -> Found {
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

fn unknown(bytes: &[u8]) -> Found {
    let text = decoded(bytes);
    if is_text(text.as_bytes()) {
        unknown_text(&text)
    } else {
        unknown_bytes(bytes)
    }
}

fn unknown_text(text: &str) -> Found {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        None => found("white space alone", GENERAL),
        Some(line) => found(
            format!(
                "text without an HLO module, which begins with `{}`",
                shortened(line)
            ),
            GENERAL,
        ),
    }
}

fn unknown_bytes(bytes: &[u8]) -> Found {
    if is_message(bytes) {
        return found(
            "a protobuf message without the computations of an HLO module",
            GENERAL,
        );
    }
    let shown: Vec<String> = bytes
        .iter()
        .take(SHOWN_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    found(
        format!(
            "data of an unknown format, which begins with the bytes {}",
            shown.join(" ")
        ),
        GENERAL,
    )
}
