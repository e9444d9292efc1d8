use crate::{GraphError, TextError, shortened};

/// Maximum length of a list, far above the number of dimensions of any tensor.
const MAX_NUMBERS: usize = 1 << 16;

/// Maximum number of characters of a word that a message shows.
const SHOWN: usize = 24;

/// Reads text from left to right. Every reading method skips space and comments first.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Number of bytes that are read.
    at: usize,
    /// Start of a comment that is never closed, once it was found.
    unclosed_comment: Option<usize>,
}

/// Tables of source locations, which may stand between computations.
pub(crate) const TABLES: [&str; 4] = ["FileNames", "FunctionNames", "FileLocations", "StackFrames"];

/// Maximum depth of computations and instructions inside instructions, and of tuples inside a tuple of which elements are
/// read.
pub(crate) const MAX_DEPTH: usize = 64;

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            unclosed_comment: None,
        }
    }

    /// Checks what no token shows: bytes 0, and, once the text is read, comments that are never closed.
    pub(crate) fn check(&self) -> Result<(), GraphError> {
        if let Some(position) = self.unclosed_comment {
            return Err(self.error(position, TextError::UnclosedComment));
        }
        // `next_byte` returns 0 at the end of the text, so a byte 0 inside would be taken for the end.
        self.text
            .find('\0')
            .map_or(Ok(()), |position| Err(self.error(position, TextError::Nul)))
    }

    /// Returns the position of the next token, in bytes.
    pub(crate) fn position(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    /// Goes back to a position.
    pub(crate) fn return_to(&mut self, position: usize) {
        self.at = position;
    }

    /// Reads something at another position, and comes back.
    pub(crate) fn aside<T>(&mut self, position: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let here = self.at;
        self.at = position;
        let result = read(self);
        self.at = here;
        result
    }

    /// Returns the text from `position` to the end of the last token.
    pub(crate) fn since(&self, position: usize) -> &'a str {
        self.text.get(position..self.at).unwrap_or_default()
    }

    /// Returns the first byte of the next token; 0 at the end of the text.
    pub(crate) fn peek(&mut self) -> u8 {
        self.skip_space();
        self.next_byte()
    }

    /// Returns the next byte, which may be space; 0 at the end of the text.
    pub(crate) fn next_byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// Reads a symbol if it is next.
    pub(crate) fn eat(&mut self, symbol: &str) -> bool {
        self.skip_space();
        // Nearly all symbols are one byte, which is faster compared alone. None is 0, which is at the end.
        let found = match symbol.as_bytes() {
            [byte] => self.next_byte() == *byte,
            bytes => self.text.as_bytes()[self.at..].starts_with(bytes),
        };
        if found {
            self.at += symbol.len();
        }
        found
    }

    /// Reads a symbol.
    pub(crate) fn expect(&mut self, symbol: &str) -> Result<(), GraphError> {
        if self.eat(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    /// Reads letters, digits, `_`, `.` and `-`. The word may be empty.
    pub(crate) fn word(&mut self) -> &'a str {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
    }

    /// Reads a word if it is next.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let start = self.position();
        let found = self.word() == word;
        if !found {
            self.at = start;
        }
        found
    }

    /// Reads the characters before the next space, comma or bracket, such as `1_0x2_2`. The pattern may be empty.
    pub(crate) fn pattern(&mut self) -> Result<&'a str, GraphError> {
        let start = self.position();
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",(){}".contains(byte);
        let pattern = self.take_while(|byte| !ends(byte));
        // A pattern is split into numbers later, and each takes more memory than its digits.
        if pattern.len() > MAX_NUMBERS {
            Err(self.too_long(start))
        } else {
            Ok(pattern)
        }
    }

    fn take_while(&mut self, belongs: impl Fn(&u8) -> bool) -> &'a str {
        self.skip_space();
        // Bytes suffice: all bytes of a character beyond ASCII are at least 0x80, so none is taken
        // for an ASCII letter or for the end of a pattern, and both ends are boundaries of
        // characters.
        let rest = &self.text.as_bytes()[self.at..];
        let start = self.at;
        let length = rest.iter().position(|byte| !belongs(byte));
        self.at += length.unwrap_or(rest.len());
        self.since(start)
    }

    /// Reads the name of an instruction or a computation, without its `%`.
    pub(crate) fn name(&mut self, expected: &str) -> Result<&'a str, GraphError> {
        let start = self.position();
        self.eat("%");
        match self.word() {
            "" => {
                self.at = start;
                Err(self.unexpected(expected))
            }
            name => Ok(name),
        }
    }

    /// Reads a whole number.
    pub(crate) fn number(&mut self) -> Result<i64, GraphError> {
        let start = self.position();
        let word = self.word();
        if word.is_empty() {
            return Err(self.unexpected("a number"));
        }
        self.parse(word, start)
    }

    /// Parses a number that stands at `position`.
    pub(crate) fn parse(&self, number: &str, position: usize) -> Result<i64, GraphError> {
        number.parse().map_err(|_| {
            let text = shortened(number);
            self.error(position, TextError::Number { text })
        })
    }

    /// Reads items separated by commas, up to and including `closing`.
    pub(crate) fn list<T>(
        &mut self,
        closing: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, GraphError>,
    ) -> Result<Vec<T>, GraphError> {
        let start = self.position();
        let mut items = Vec::new();
        // A comma may follow the last item. The limit holds before an item is kept, since items may
        // be larger than their text.
        while !self.eat(closing) {
            if items.len() >= MAX_NUMBERS {
                return Err(self.too_long(start));
            }
            items.push(item(self)?);
            if !self.eat(",") {
                self.expect(closing)?;
                break;
            }
        }
        Ok(items)
    }

    /// Skips a pair of brackets and everything inside.
    pub(crate) fn skip_group(&mut self) -> Result<(), GraphError> {
        let start = self.position();
        let opening = char::from(self.next_byte());
        // The brackets that are still to be closed, the innermost last. A list does not overflow,
        // as recursion could.
        let mut closings = Vec::new();
        while !self.is_at_end() {
            match self.next_byte() {
                b'(' => closings.push(b')'),
                b'[' => closings.push(b']'),
                b'{' => closings.push(b'}'),
                closing @ (b')' | b']' | b'}') => {
                    let expected = closings.pop().unwrap_or_default();
                    if expected != closing {
                        return Err(self.unexpected(&format!("`{}`", char::from(expected))));
                    }
                }
                b'"' | b'\'' => {
                    self.skip_string()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if closings.is_empty() {
                return Ok(());
            }
        }
        Err(self.error(start, TextError::Unclosed { opening }))
    }

    fn skip_string(&mut self) -> Result<(), GraphError> {
        let start = self.at;
        let quote = self.next_byte();
        self.at += 1;
        while self.at < self.text.len() {
            let byte = self.next_byte();
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                return Ok(());
            }
        }
        // A backslash at the very end leads one byte past the text.
        self.at = self.text.len();
        let opening = char::from(quote);
        Err(self.error(start, TextError::Unclosed { opening }))
    }

    /// Skips the value of an attribute: up to a comma, the end of the line or a closing bracket around it.
    pub(crate) fn skip_value(&mut self) -> Result<(), GraphError> {
        self.skip_space();
        while self.at < self.text.len() {
            match self.next_byte() {
                b',' | b'\n' | b')' | b']' | b'}' => break,
                b'(' | b'[' | b'{' => self.skip_group()?,
                b'"' | b'\'' => self.skip_string()?,
                b'/' if self.skip_comment() => {}
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn skip_space(&mut self) {
        loop {
            match self.next_byte() {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' if self.skip_comment() => {}
                _ => return,
            }
        }
    }

    /// Skips a comment if one is next. A comment that is never closed extends to the end of the text, and is remembered.
    fn skip_comment(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let length = if rest.starts_with("//") {
            rest.find('\n')
        } else if let Some(inside) = rest.strip_prefix("/*") {
            let length = inside.find("*/").map(|length| length + 4);
            if length.is_none() {
                self.unclosed_comment.get_or_insert(self.at);
            }
            length
        } else {
            return false;
        };
        self.at += length.unwrap_or(rest.len());
        true
    }

    fn too_long(&self, position: usize) -> GraphError {
        self.error(position, TextError::ListTooLong { limit: MAX_NUMBERS })
    }

    /// Returns the error that the next word is not what is expected.
    pub(crate) fn unexpected(&mut self, expected: &str) -> GraphError {
        let position = self.position();
        let rest = self.text.get(position..).unwrap_or_default();
        let word = rest.split_whitespace().next().unwrap_or_default();
        let found = match word.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("`{}…`", &word[..end]),
            None if word.is_empty() => "the end of the text".to_owned(),
            None => format!("`{word}`"),
        };
        let expected = expected.to_owned();
        self.error(position, TextError::Unexpected { expected, found })
    }

    /// Returns an error at a position.
    pub(crate) fn error(&self, position: usize, source: TextError) -> GraphError {
        error_in(self.text, position, source)
    }
}

/// Returns an error at a position of a text, in bytes.
pub(crate) fn error_in(text: &str, position: usize, source: TextError) -> GraphError {
    let before = text.get(..position).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    GraphError::Text {
        line,
        column,
        source,
    }
}

/// Returns whether a file is HLO text. HLO text begins with `HloModule`, and no protobuf of a module does.
pub(crate) fn is_hlo_text(bytes: &[u8]) -> bool {
    Lexer::new(valid_start(bytes)).word() == "HloModule"
}

/// Decodes UTF-8.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, GraphError> {
    // The error counts lines and columns in the valid part, which reaches up to the byte at fault.
    std::str::from_utf8(bytes)
        .map_err(|error| error_in(valid_start(bytes), error.valid_up_to(), TextError::NotUtf8))
}

/// Returns the bytes before the first one that is not UTF-8.
fn valid_start(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
