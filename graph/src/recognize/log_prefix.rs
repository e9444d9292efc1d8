//! What loggers write in front of a line.

/// Returns the length of the prefix of a line that XLA logs: `I0000 00:00:00.000000 12 file.cc:34] `.
pub(super) fn logged(line: &str) -> usize {
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
pub(super) fn alike(prefix: &str, line: &str) -> usize {
    let mut expected = prefix.as_bytes();
    let mut found = line.as_bytes();
    // Everything before `expected` is alike everything before `found`.
    while let Some(&first) = expected.first() {
        let Some(belongs) = run_of(first) else {
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

/// Returns which bytes follow this one in a run whose length may differ: digits, such as those of a
/// time, or the space that aligns them. Returns `None` for a byte that is no part of a run.
fn run_of(first: u8) -> Option<fn(&u8) -> bool> {
    match first {
        b'0'..=b'9' => Some(u8::is_ascii_digit),
        b' ' | b'\t' => Some(|byte| matches!(byte, b' ' | b'\t')),
        _ => None,
    }
}

fn skipped(bytes: &[u8], belongs: fn(&u8) -> bool) -> &[u8] {
    let length = bytes
        .iter()
        .position(|byte| !belongs(byte))
        .unwrap_or(bytes.len());
    &bytes[length..]
}
