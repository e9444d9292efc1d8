use std::fmt;

/// What a file or a field contains, if it is not read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name of the content, such as `a PDF document`.
    pub name: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "this is {}; {}", self.name, self.advice)
    }
}
