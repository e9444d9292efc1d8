//! HLO text: pieces that mean something to its reader are inserted.

use super::mutator::Mutator;

/// What opens, closes and separates the parts of a text, and names and numbers at which a reader decides.
const PIECES: [&str; 32] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "/*",
    "//",
    "%",
    ",",
    "=",
    "->",
    "ROOT ",
    "ENTRY ",
    "é",
    "\0",
    "99999999999999999999",
    "-9223372036854775808",
    "?",
    "<=",
    "-start(",
    "-update(",
    "-done(",
    "#0",
    "#1",
    "tuple(",
    "get-tuple-element(",
    ", dimensions={0}",
    ", to_apply={",
    ", window={size=",
    ", slice={[",
];

/// Inserts one piece, or many of it, half of the time, and changes any bytes otherwise.
pub fn mutate_text(input: &mut Vec<u8>, mutator: &mut Mutator) {
    if mutator.random.bool() {
        return mutator.change(input);
    }
    let piece = PIECES[mutator.random.usize(..PIECES.len())];
    let times = mutator.random.usize(1..200);
    let at = mutator.random.usize(..=input.len());
    input.splice(at..at, piece.repeat(times).into_bytes());
}
