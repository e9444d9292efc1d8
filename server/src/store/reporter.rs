use std::sync::Arc;

use hlorank_graph::Digest;

/// Who reported a measurement: the name of a token or, if calls need none, an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reporter(Arc<str>);

/// Bytes of the tag of a reporter, which the keys of its measurements end with.
pub(super) const TAG_BYTES: usize = 16;

impl Reporter {
    /// Returns the reporter of this name; `None` if the name is empty.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        (!name.is_empty()).then(|| Self(name.into()))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    pub(super) fn tag(&self) -> [u8; TAG_BYTES] {
        let Digest(digest) = Digest::of_parts("hlorank 2026 reporter", [self.0.as_bytes()]);
        let mut tag = [0; TAG_BYTES];
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
