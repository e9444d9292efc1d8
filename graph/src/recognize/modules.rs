//! Finds the modules in a text, which may also be a log, a report or a dump of several modules.

use super::log_prefix::{alike, logged};
use crate::pace;

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
const MAX_MODULES: usize = 10_000;

/// Number of lines between two pauses.
const LINES: usize = 256;

/// The first word of a module.
const HEADER: &str = "HloModule";

/// Tables of source locations between computations.
const TABLES: [&str; 4] = ["FileNames", "FunctionNames", "FileLocations", "StackFrames"];

/// Lines that end a module, even in the middle of a computation.
const ENDS: [&str; 2] = ["## END_GRAPH", "```"];

/// Returns the modules of a text in their order, at most 10,000. Reads each line once.
pub(crate) fn modules_of(text: &str) -> Vec<TextModule> {
    if !text.contains(HEADER) {
        return Vec::new();
    }
    let mut modules = Vec::new();
    let mut open = None::<OpenModule>;
    for (number, line) in text.lines().enumerate() {
        if modules.len() >= MAX_MODULES {
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
pub(super) fn headers(text: &str) -> impl Iterator<Item = usize> {
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
