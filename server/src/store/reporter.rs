use std::sync::Arc;

use hlorank_graph::Digest;

/// Who reported a measurement: the name of a token or, if calls need none, an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reporter(Arc<str>);

/// Purpose of the digest of a reporter.
const REPORTER: &str = "hlorank 2026 reporter";

/// Bytes of the tag of a reporter.
pub(super) const TAG_BYTES: usize = 16;

/// What the keys of a reporter's measurements end with.
pub(super) type Tag = [u8; TAG_BYTES];

impl Reporter {
    /// Returns the reporter of this name; `None` if the name is empty, because the reporter is not known.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        (!name.is_empty()).then(|| Self(name.into()))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    pub(super) fn tag(&self) -> Tag {
        let Digest(digest) = Digest::of_parts(REPORTER, [self.0.as_bytes()]);
        let mut tag = Tag::default();
        tag.copy_from_slice(&digest[..TAG_BYTES]);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reporters_of_different_names_have_different_tags() {
        let [one, other] = ["ci", "192.0.2.7"].map(|name| Reporter::named(name).unwrap());
        assert_ne!(one.tag(), other.tag());
        assert_eq!(Reporter::named(""), None);
    }
}
