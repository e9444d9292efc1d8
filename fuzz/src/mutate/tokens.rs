//! Text: words, numbers, symbols and lines are changed as wholes.

use fastrand::Rng;

use super::{bytes, changes, number, part};

/// What HLO text is made of, and what nearly is.
const HLO: [&str; 52] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "\\",
    "/*",
    "*/",
    "//",
    "%",
    ",",
    "=",
    "->",
    ":",
    "<=",
    "?",
    "_",
    "x",
    "-",
    "\n",
    "\r\n",
    "\0",
    "é",
    "ROOT ",
    "ENTRY ",
    "HloModule ",
    "f32[2,3]{1,0}",
    "(f32[2], token[])",
    "b(f32[2])",
    "f32[]",
    "parameter(0)",
    "constant({...})",
    "async-start(",
    "slice-start(",
    "copy-start(",
    "async-done(",
    "fusion(",
    "call(",
    ", dimensions={0,1}",
    ", to_apply={",
    ", calls=",
    ", window={size=2x2 pad=0_1x1_0}",
    ", slice={[0:1], [0:2:3]}",
    ", padding=0_1_2x-1_0",
    ", dim_labels=b01f_01io->b01f",
    ", control-predecessors={",
    ", branch_computations={",
    ", metadata={op_name=\"a\"}",
    ", backend_config={\"a\":[1]}",
    ", sharding={replicated}",
];

/// What JSON is made of, and what nearly is.
const JSON: [&str; 32] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "0.5",
    "-0",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "é",
    "[[[[[[[[",
    "\"tile\"",
    "\"layout\"",
    "\"segment\"",
    "\"graph\"",
    "\"chunk_configs\":5,",
    "\"batch_dependent\":true,",
    "\"files\":{\"../model.onnx\":\"\"},",
    "512",
    "2048",
];

/// Changes HLO text.
pub fn mutate_text(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    mutate(input, other, &HLO, random);
}

/// Changes JSON.
pub fn mutate_json(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    mutate(input, other, &JSON, random);
}

fn mutate(input: &mut Vec<u8>, other: &[u8], dictionary: &[&str], random: &mut Rng) {
    if random.u8(..32) == 0 {
        bytes::mutate_once(input, other, random);
        return;
    }
    let numbers: Vec<String> = (0..4).map(|_| number(random).cast_signed().to_string()).collect();
    let mut changed = tokens(input);
    let others = tokens(other);
    for _ in 0..changes(random) {
        if random.u8(..3) == 0 {
            mutate_lines(&mut changed, &others, random);
        } else {
            mutate_tokens(&mut changed, &others, dictionary, &numbers, random);
        }
    }
    *input = changed.concat();
}

fn mutate_tokens<'a>(
    tokens: &mut Vec<&'a [u8]>,
    others: &[&'a [u8]],
    dictionary: &[&'a str],
    numbers: &'a [String],
    random: &mut Rng,
) {
    if tokens.is_empty() {
        return;
    }
    let at = random.usize(..tokens.len());
    let kind = kind(tokens[at]);
    let any = |tokens: &[&'a [u8]], random: &mut Rng| {
        // One of the same kind is where a reader expects it.
        let mut chosen = || tokens[random.usize(..tokens.len())];
        (0..8).map(|_| chosen()).find(|token| self::kind(token) == kind).unwrap_or(b",")
    };
    match random.u8(..10) {
        0 | 1 => tokens[at] = any(tokens, random),
        2 if !others.is_empty() => tokens[at] = any(others, random),
        3 => drop(tokens.remove(at)),
        4 => tokens.insert(at, tokens[at]),
        5 => {
            let with = random.usize(..tokens.len());
            tokens.swap(at, with);
        }
        6 => tokens.insert(at, dictionary[random.usize(..dictionary.len())].as_bytes()),
        7 if random.u8(..8) == 0 => {
            let repeated = dictionary[random.usize(..dictionary.len())].as_bytes();
            tokens.splice(at..at, std::iter::repeat_n(repeated, random.usize(..2000)));
        }
        7 if random.u8(..4) == 0 => tokens.truncate(at),
        _ => match (0..16)
            .map(|_| random.usize(..tokens.len()))
            .find(|&at| self::kind(tokens[at]) == Kind::Number)
        {
            Some(at) => tokens[at] = numbers[random.usize(..numbers.len())].as_bytes(),
            None => tokens[at] = dictionary[random.usize(..dictionary.len())].as_bytes(),
        },
    }
}

/// Removes, repeats, moves or takes over a line.
fn mutate_lines<'a>(tokens: &mut Vec<&'a [u8]>, others: &[&'a [u8]], random: &mut Rng) {
    let line = line_at(tokens, random);
    match random.u8(..5) {
        0 => drop(tokens.drain(line)),
        1 => {
            let copied = tokens[line.clone()].to_vec();
            tokens.splice(line.start..line.start, copied);
        }
        2 => {
            let moved: Vec<&[u8]> = tokens.drain(line).collect();
            let to = line_at(tokens, random).start;
            tokens.splice(to..to, moved);
        }
        3 => {
            let taken = others[line_at(others, random)].to_vec();
            tokens.splice(line.start..line.start, taken);
        }
        _ => {
            let taken = others[part(others.len(), 40, random)].to_vec();
            tokens.splice(line, taken);
        }
    }
}

/// The tokens of a line, with its end.
fn line_at(tokens: &[&[u8]], random: &mut Rng) -> std::ops::Range<usize> {
    let at = if tokens.is_empty() { 0 } else { random.usize(..tokens.len()) };
    let is_end = |token: &&[u8]| token == b"\n";
    let start = tokens[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| at + end + 1);
    start..end
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Number,
    Word,
    Symbol,
}

fn kind(token: &[u8]) -> Kind {
    match token.first() {
        Some(byte) if byte.is_ascii_whitespace() => Kind::Space,
        Some(byte) if byte.is_ascii_digit() => Kind::Number,
        Some(byte) if byte.is_ascii_alphanumeric() => Kind::Word,
        _ => Kind::Symbol,
    }
}

/// Runs of letters, digits, `_`, `.` and `-`, or single bytes; characters past ASCII are whole.
fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte) || byte >= 0x80;
    text.chunk_by(|&one, &next| is_word(one) && is_word(next)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_tokens() {
        let text = b"%a.1 = f32[2]{0} parameter(0)\n";
        let split = tokens(text);
        assert_eq!(split.concat(), text);
        assert_eq!(split[..4], [&b"%"[..], b"a.1", b" ", b"="]);
    }
}
