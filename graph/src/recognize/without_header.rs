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
    computations_with_header(text, first).map(|text| (text, 1))
}

/// Returns the lines with content, without the white space around them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
}

/// Returns the module of a text of computations, of which `first` is the first line.
fn computations_with_header(text: &str, first: &str) -> Option<String> {
    let name = computation_name(first)?;
    // Much source code has lines that look like the header of a computation, but no instruction
    // behind them.
    if !lines(text).nth(1).is_none_or(is_instruction) {
        return None;
    }
    let entry = lines(text)
        .find_map(|line| line.strip_prefix("ENTRY "))
        .and_then(computation_name);
    let text = if entry.is_some() {
        text.to_owned()
    } else {
        with_entry(text)
    };
    Some(format!("HloModule {}\n{text}", entry.unwrap_or(name)))
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

fn is_element_type(word: &str) -> bool {
    const STARTS: [&str; 7] = ["pred", "token", "f", "bf", "s", "u", "c"];
    let is_type = |start: &&str| {
        word.strip_prefix(*start).is_some_and(|rest| {
            rest.chars()
                .all(|character| character.is_ascii_alphanumeric())
                && rest.len() < 12
                && (rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit()))
        })
    };
    word.len() > 1 && STARTS.iter().any(is_type)
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

/// Marks the last computation as the entry, because callees come before their callers.
fn with_entry(text: &str) -> String {
    let mut place = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if computation_name(line.trim()).is_some() {
            place = Some(start);
        }
        start += line.len();
    }
    let (before, after) = text.split_at(place.unwrap_or(0));
    format!("{before}ENTRY {}", after.trim_start_matches([' ', '\t']))
}
