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
