//! Finds the modules in a text, which may also be a log, a report or a dump of several modules.

use super::{formats::known, protobuf::holds_module};
use crate::{
    GraphError, TextError, UnreadContent, pace,
    syntax::{TABLES, is_element_type, is_hlo_text},
};

/// A module in a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextModule {
    /// Its text, without what a logger wrote in front of each line.
    pub(crate) text: String,
    /// Number of its first line in the whole text, from 0.
    pub(crate) first_line: usize,
    /// Number of characters that were in front of each line.
    prefixes: Vec<usize>,
}

/// Maximum number of modules of one text.
pub(crate) const MAX_MODULES: usize = 10_000;

/// Number of lines between two pauses.
const LINES: usize = 256;

/// The first word of a module.
const HEADER: &str = "HloModule";

/// Lines that end a module, even in the middle of a computation.
const ENDS: [&str; 2] = ["## END_GRAPH", "```"];

/// Returns the modules of a text in their order; of a text with more than [`MAX_MODULES`] some of those after them, too. Reads each
/// line once.
pub(crate) fn modules_of(text: &str) -> Vec<TextModule> {
    if !text.contains(HEADER) {
        return Vec::new();
    }
    let mut modules = Vec::new();
    let mut open = None::<OpenModule>;
    for (number, line) in text.lines().enumerate() {
        if modules.len() > MAX_MODULES {
            break;
        }
        // A header ends the module before it, even in the middle of a computation: the log of that
        // one was cut off.
        if let Some(prefix) = header_prefix(line) {
            let before = open.replace(OpenModule::new(number, &line[..prefix]));
            modules.extend(before.and_then(OpenModule::close));
        }
        if open.as_mut().is_some_and(|module| !module.takes(line)) {
            modules.extend(open.take().and_then(OpenModule::close));
        }
    }
    modules.extend(open.and_then(OpenModule::close));
    modules
}

/// Returns the numbers of the lines, from 0, that begin a module.
fn headers(text: &str) -> impl Iterator<Item = usize> {
    // Nearly every text without a module is known by one search, which takes no time per line.
    let text = if text.contains(HEADER) { text } else { "" };
    let lines = pace::in_steps(LINES, text.lines()).enumerate();
    lines
        .filter(|(_, line)| header_prefix(line).is_some())
        .map(|(number, _)| number)
}

impl TextModule {
    /// Returns the place in the whole text of a line and a column of the module, both from 1.
    pub(crate) fn place(&self, line: usize, column: usize) -> (usize, usize) {
        let prefix = self.prefixes.get(line - 1).copied().unwrap_or(0);
        (self.first_line + line, prefix + column)
    }

    /// Adds a line without its prefix of this length in bytes.
    fn push(&mut self, line: &str, prefix: usize) {
        // Columns of errors are counted in characters.
        self.prefixes.push(line[..prefix].chars().count());
        self.text.push_str(&line[prefix..]);
        self.text.push('\n');
    }
}

/// A module whose lines are being read.
struct OpenModule<'a> {
    module: TextModule,
    prefix: &'a str,
    /// Number of brackets that are open.
    depth: usize,
    in_table: bool,
}

impl<'a> OpenModule<'a> {
    fn new(first_line: usize, prefix: &'a str) -> Self {
        let module = TextModule {
            text: String::new(),
            first_line,
            prefixes: Vec::new(),
        };
        Self {
            module,
            prefix,
            depth: 0,
            in_table: false,
        }
    }

    /// Adds a line if it belongs to the module.
    fn takes(&mut self, line: &str) -> bool {
        let prefix = logged(line).max(alike(self.prefix, line));
        let line_without = &line[prefix..];
        let trimmed = line_without.trim();
        // Inside brackets every line belongs, as does the header, which is the first line.
        let belongs = self.depth > 0 || self.module.prefixes.is_empty() || self.continues(trimmed);
        if !belongs || ENDS.iter().any(|end| trimmed.starts_with(end)) {
            return false;
        }
        self.depth = depth_after(self.depth, line_without);
        self.module.push(line, prefix);
        true
    }

    /// Returns whether a line between two computations belongs to the module.
    fn continues(&mut self, line: &str) -> bool {
        // The tables are between computations, and their rows look like no other line of a module:
        // they begin with a number.
        let is_row = self.in_table && line.starts_with(|first: char| first.is_ascii_digit());
        self.in_table = TABLES.contains(&line) || is_row || (self.in_table && line.is_empty());
        let starts = ["//", "/*", "}", "%", "ENTRY"]
            .iter()
            .any(|start| line.starts_with(start));
        line.is_empty() || self.in_table || starts || line.ends_with('{')
    }

    /// Returns the module if it has an instruction. A log often mentions the header of a module alone.
    fn close(self) -> Option<TextModule> {
        self.module.text.contains(" = ").then_some(self.module)
    }
}

/// Returns the length of what is in front of the header of a module; `None` if the line has no header.
fn header_prefix(line: &str) -> Option<usize> {
    let start = line.find(HEADER)?;
    let name = line[start + HEADER.len()..]
        .strip_prefix([' ', '\t'])?
        .trim_start();
    let prefix = line[..start].trim_end();
    // A time stamp, such as 2023-01-01T00:00:00Z. Lower-case letters in front of the word make it
    // part of a sentence.
    let is_stamp = prefix.starts_with(|first: char| first.is_ascii_digit())
        && !prefix.contains(|character: char| character.is_ascii_lowercase());
    let can_precede = prefix.is_empty() || prefix.ends_with([']', ':', '|', '>']) || is_stamp;
    (can_precede && !name.is_empty()).then_some(start)
}

/// Returns the number of open brackets after a line. Brackets in strings and comments do not count.
fn depth_after(mut depth: usize, line: &str) -> usize {
    let mut bytes = line.bytes().peekable();
    let mut quote = None;
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            // The escaped byte may be a quote, which does not end the string.
            (b'\\', Some(_)) => _ = bytes.next(),
            (_, Some(open)) => quote = (byte != open).then_some(open),
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'/', None) if bytes.peek() == Some(&b'/') => break,
            (b'(' | b'[' | b'{', None) => depth += 1,
            (b')' | b']' | b'}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}

/// Returns the length of the prefix of a line that XLA logs: `I0000 00:00:00.000000 12 file.cc:34] `.
fn logged(line: &str) -> usize {
    let Some((prefix, _)) = line.split_once("] ") else {
        // A logger that trims the ends of lines leaves no space behind the bracket of an empty
        // line.
        return if line.ends_with(']') && is_place(&line[..line.len() - 1]) {
            line.len()
        } else {
            0
        };
    };
    if is_place(prefix) {
        prefix.len() + 2
    } else {
        0
    }
}

/// Returns whether text ends with a place such as ` file.cc:34`.
fn is_place(prefix: &str) -> bool {
    let place = prefix.rsplit([' ', '\t']).next().unwrap_or_default();
    let Some((file, line)) = place.rsplit_once(':') else {
        return false;
    };
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    is_number && file.contains('.') && place.len() < prefix.len()
}

/// Returns the length of the prefix of a line that equals another prefix but for numbers and spaces; 0 if none does.
fn alike(prefix: &str, line: &str) -> usize {
    let mut expected = prefix.as_bytes();
    let mut found = line.as_bytes();
    // Everything before `expected` is alike everything before `found`.
    while let Some(&first) = expected.first() {
        // Which bytes follow this one in a run whose length may differ: digits, such as those of a
        // time, or the space that aligns them.
        let belongs: Option<fn(&u8) -> bool> = match first {
            b'0'..=b'9' => Some(u8::is_ascii_digit),
            b' ' | b'\t' => Some(|byte| matches!(byte, b' ' | b'\t')),
            _ => None,
        };
        let Some(belongs) = belongs else {
            if found.first() != Some(&first) {
                return 0;
            }
            (expected, found) = (&expected[1..], &found[1..]);
            continue;
        };
        let rest = skipped(found, belongs);
        // Loggers that trim the ends of lines leave nothing of an empty line but the prefix.
        if rest.len() == found.len() && !rest.is_empty() {
            return 0;
        }
        (expected, found) = (skipped(expected, belongs), rest);
    }
    let length = line.len() - found.len();
    if line.is_char_boundary(length) {
        length
    } else {
        0
    }
}

fn skipped(bytes: &[u8], belongs: fn(&u8) -> bool) -> &[u8] {
    let length = bytes
        .iter()
        .position(|byte| !belongs(byte))
        .unwrap_or(bytes.len());
    &bytes[length..]
}

/// Operations in the graphs of PyTorch/XLA, which are written like HLO.
const OTHER_OPERATIONS: [&str; 3] = [" prim::", " aten::", " xla::"];

/// Returns the module of a text that has computations or instructions but no `HloModule`, with the number of lines that
/// were added above it; `None` if it has neither. XLA's parser reads such texts too.
pub(crate) fn with_header(text: &str) -> Option<(String, usize)> {
    let first = lines(text).next()?;
    let is_other = |namespace: &&str| text.contains(*namespace);
    if OTHER_OPERATIONS.iter().any(is_other) {
        return None;
    }
    if is_instruction(first) {
        return lines(text)
            .all(is_instruction)
            .then(|| (format!("HloModule entry\nENTRY entry {{\n{text}\n}}\n"), 2));
    }
    let name = computation_name(first)?;
    // Much source code has lines that look like the header of a computation, but no instruction
    // behind them.
    if !lines(text).nth(1).is_none_or(is_instruction) {
        return None;
    }
    let entry = lines(text)
        .find_map(|line| line.strip_prefix("ENTRY "))
        .and_then(computation_name);
    if let Some(entry) = entry {
        return Some((format!("HloModule {entry}\n{text}"), 1));
    }
    // The last computation is the entry, because callees come before their callers.
    let mut place = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if computation_name(line.trim()).is_some() {
            place = start;
        }
        start += line.len();
    }
    let (before, after) = text.split_at(place);
    let after = after.trim_start_matches([' ', '\t']);
    Some((format!("HloModule {name}\n{before}ENTRY {after}"), 1))
}

/// Returns the lines with content, without the white space around them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
}

/// Returns the name in a line such as `name {` or `ENTRY %name (a: f32[]) -> f32[] {`.
fn computation_name(line: &str) -> Option<&str> {
    let header = line.strip_suffix('{')?.trim();
    let header = header.strip_prefix("ENTRY ").unwrap_or(header).trim_start();
    let header = header.strip_prefix('%').unwrap_or(header);
    let end = header
        .find(|character: char| !is_name(character))
        .unwrap_or(header.len());
    let (name, rest) = header.split_at(end);
    let rest = rest.trim_start();
    let is_header = rest.is_empty() || (rest.starts_with('(') && rest.contains("->"));
    (is_header && !name.is_empty()).then_some(name)
}

/// Returns whether a line is an instruction: `name = f32[2]{0} opcode(`.
fn is_instruction(line: &str) -> bool {
    let line = line.strip_prefix("ROOT ").unwrap_or(line);
    let Some((name, value)) = line.split_once(" = ") else {
        return false;
    };
    let name = name.strip_prefix('%').unwrap_or(name);
    // A tuple begins with a bracket, and an array with its element type.
    let has_shape =
        value.starts_with('(') || value.split(['[', '(']).next().is_some_and(is_element_type);
    !name.is_empty() && name.chars().all(is_name) && has_shape && value.contains('(')
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

/// Returns the error of a field `hlo_module`, and names its content if that is of another known format.
pub(crate) fn named_module(bytes: &[u8], error: GraphError) -> GraphError {
    // A module with a fault of its own keeps its error, which says more than the name of its
    // format.
    if holds_module(bytes) || !matches!(error, GraphError::Malformed { .. } | GraphError::Empty) {
        return error;
    }
    let found = if is_hlo_text(bytes) {
        Some(named("HLO text", "send it as hlo_text"))
    } else {
        known(bytes)
    };
    found.map_or(error, |found| GraphError::OtherFormat {
        field: "hlo_module",
        found,
    })
}

/// Returns the error of a field `hlo_text`, and names its content if that is not one module.
pub(crate) fn named_text(text: &str, error: GraphError) -> GraphError {
    if !matches!(
        error,
        GraphError::Text {
            source: TextError::Unexpected { .. } | TextError::Unclosed { .. },
            ..
        }
    ) {
        return error;
    }
    let found = other_than_module(text);
    found.map_or(error, |found| GraphError::OtherFormat {
        field: "hlo_text",
        found,
    })
}

fn other_than_module(text: &str) -> Option<UnreadContent> {
    let mut lines = headers(text).map(|line| line + 1);
    let Some(first) = lines.next() else {
        return without_module(text);
    };
    if let Some(second) = lines.next() {
        let name = format!("text with several HLO modules (lines {first} and {second})");
        return Some(named(name, "send one of them"));
    }
    // Text that begins with its only module is what was asked for, so the error is inside the
    // module.
    (!is_hlo_text(text.as_bytes())).then(|| {
        named(
            format!("text around an HLO module, which begins in line {first}"),
            "send the module alone, without what a logger wrote in front of its lines",
        )
    })
}

/// Names text in which no line is the header of a module.
fn without_module(text: &str) -> Option<UnreadContent> {
    let unmarked = text.trim_start_matches('\u{feff}');
    if is_hlo_text(unmarked.as_bytes()) {
        // To `headers`, the mark is text in front of the header that no logger writes.
        return (unmarked != text).then(|| {
            named(
                "HLO text after a byte order mark",
                "send it without the mark",
            )
        });
    }
    if with_header(text).is_none() {
        return known(text.as_bytes());
    }
    Some(named(
        "HLO text without the header of a module",
        "put a line such as `HloModule name` in front, and `ENTRY` in front of the entry computation",
    ))
}

fn named(name: impl Into<String>, advice: &str) -> UnreadContent {
    UnreadContent {
        name: name.into(),
        advice: advice.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_module_is_a_place_in_the_log() {
        let log = "start\nI0000 00:00:01.5 7 dumper.cc:9] HloModule m\n\nI0000 00:00:01.5 17 dumper.cc:9] ENTRY e {\n\
               ROOT c = f32[] constant(1)\n}\ndone\n";
        let [module] = &modules_of(log)[..] else {
            panic!("one module")
        };
        assert_eq!(
            module.text,
            "HloModule m\n\nENTRY e {\nROOT c = f32[] constant(1)\n}\n"
        );
        assert_eq!(module.place(3, 1), (4, 34));
        assert_eq!(module.place(4, 2), (5, 2));
    }
}
