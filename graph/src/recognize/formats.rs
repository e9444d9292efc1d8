//! The formats that are not read, by the rules of `formats.json`.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;

use super::protobuf::has_path;
use crate::Found;

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

    pub(super) fn binary(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    pub(super) fn zip(entries: &'a [String]) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }

    fn is_binary(&self) -> bool {
        self.text.is_none()
    }

    fn has_bytes(&self, at: usize, bytes: &[u8]) -> bool {
        // Text may contain any few bytes at a place by chance, while a binary format is known by
        // them.
        let place = self.bytes.get(at..).filter(|_| at == 0 || self.is_binary());
        place.is_some_and(|place| place.starts_with(bytes))
    }

    fn has_inside(&self, bytes: &[u8]) -> bool {
        let start = &self.bytes[..self.bytes.len().min(LOOKED_AT)];
        self.is_binary() && start.windows(bytes.len()).any(|window| window == bytes)
    }

    fn begins_with(&self, word: &str) -> bool {
        // `get` is `None` if the word ends inside a character of the line, which then is not the
        // word.
        let start = self.lines.first().and_then(|line| line.get(..word.len()));
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    }
}

/// Returns the first format that fits.
pub(super) fn find(sample: &Sample<'_>) -> Option<Found> {
    let format = FORMATS
        .formats
        .iter()
        .find(|format| format.when.iter().any(|rule| rule.fits(sample)))?;
    Some(found(format.name.clone(), &format.advice))
}

/// Returns what content is, with the advice of a key.
pub(super) fn found(name: impl Into<String>, advice: &str) -> Found {
    let advice = FORMATS.advice.get(advice).cloned().unwrap_or_default();
    Found {
        name: name.into(),
        advice,
    }
}

impl Rule {
    fn fits(&self, sample: &Sample<'_>) -> bool {
        match self {
            Self::Bytes { at, bytes } => sample.has_bytes(*at, &latin_1(bytes)),
            Self::Inside { inside } => sample.has_inside(&latin_1(inside)),
            Self::First { first } => sample.begins_with(first),
            Self::Line { line } => sample.lines.iter().any(|found| found.starts_with(line)),
            Self::Text { text } => sample.text.is_some_and(|found| found.contains(text)),
            Self::Fields { fields } => {
                sample.is_binary() && fields.iter().all(|path| has_path(sample.bytes, path))
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
