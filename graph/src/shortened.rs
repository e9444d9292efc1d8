use std::borrow::Cow;

/// Returns the first 80 characters of a name for a message. A name comes from outside and may be megabytes long.
pub fn shortened(name: &str) -> String {
    const SHOWN: usize = 80;
    let mut characters = name.chars();
    let start: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_none() {
        start
    } else {
        format!("{start}…")
    }
}

/// Returns whether a letter neither controls a terminal nor changes the direction of the text around it.
pub fn is_printable(letter: char) -> bool {
    // Marks and overrides of the direction of text, letters without width, and separators of lines and paragraphs.
    let is_invisible = matches!(
        letter,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    !letter.is_control() && !is_invisible
}

/// Escapes every letter that is not [printable](is_printable) as JSON does: `\u001b`. JSON stays JSON, because only its strings can have
/// such a letter. A name from outside then forges neither a line nor a colour.
pub fn escaped(text: &str) -> Cow<'_, str> {
    // Nearly every line of a log is ASCII, of which a byte takes a tenth of the time of a letter.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(is_printable) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_printable(letter) {
            escaped.push(letter);
        } else {
            // JSON has escapes of 16 bits, so a character beyond them becomes a surrogate pair.
            let mut units = [0; 2];
            let units = letter.encode_utf16(&mut units).iter();
            escaped.extend(units.map(|unit| format!("\\u{unit:04x}")));
        }
    }
    escaped.into()
}

/// Removes the numbers of the system's errors, such as ` (os error 2)`. The words before each say the same to a person.
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    const NUMBER: &str = " (os error ";
    let mut parts = text.split(NUMBER);
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return text.into();
    }
    let rests = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    std::iter::once(first).chain(rests).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_removed_wherever_they_stand() {
        let text = "cannot read a: No such file or directory (os error 2); b: Is a directory (os error 21)";
        let expected = "cannot read a: No such file or directory; b: Is a directory";
        assert_eq!(without_error_numbers(text), expected);
        assert!(matches!(
            without_error_numbers("plain (2)"),
            Cow::Borrowed("plain (2)")
        ));
    }

    #[test]
    fn what_cannot_be_printed_is_escaped_as_in_json() {
        assert_eq!(
            escaped("a\n\u{1b}[2J\u{202e}é\u{7f}"),
            "a\\u000a\\u001b[2J\\u202eé\\u007f"
        );
        assert!(matches!(escaped("plain"), Cow::Borrowed("plain")));
    }
}
