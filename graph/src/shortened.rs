/// Returns the first 80 characters of a name for a message. A name comes from outside and may be megabytes long.
#[must_use]
pub fn shortened(name: &str) -> String {
    const SHOWN: usize = 80;
    let mut characters = name.chars();
    let start: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_none() { start } else { format!("{start}…") }
}
