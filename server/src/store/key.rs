use std::sync::Arc;

use hlorank_graph::Digest;

/// What measurements are about: one graph on one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The client's name for hardware, compiler and flags, at most 65,535 bytes.
    pub target: String,
    /// The graph hash.
    pub graph: Digest,
}

/// Which measurements are listed or deleted. The default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasurementFilter {
    /// Those of a target; `None` for all.
    pub target: Option<String>,
    /// Those of one graph on the target; `None` for all.
    pub graph: Option<Digest>,
    /// Those of a reporter; `None` for all.
    pub reporter: Option<Reporter>,
    /// Those that were reported before this time, in seconds since 1970; `None` for all.
    pub reported_before: Option<u64>,
}

/// Whose measurements of a graph are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReporterFilter {
    /// Those of all reporters.
    Everyone,
    /// Those of a reporter, and then those of the others.
    First(Reporter),
    /// Those of a reporter alone.
    Only(Reporter),
}

/// Who reported a measurement: the name of a token or, if calls need none, an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reporter(Arc<str>);

/// Bytes of the tag of a reporter, which the keys of its measurements end with.
pub(super) const TAG_BYTES: usize = 16;

/// Purpose of the digest of a configuration.
const CONFIGURATION: &str = "hlorank 2026 stored configuration";

pub(super) const DIGEST_BYTES: usize = size_of::<Digest>();

/// What names a configuration among those of a graph, given its canonical bytes.
pub(crate) fn config_digest(config: &[u8]) -> Digest {
    Digest::of_parts(CONFIGURATION, [config])
}

impl Subject {
    /// What the keys of its measurements begin with: the length of the target in two bytes, the target and the graph hash.
    pub(super) fn prefix(&self) -> Vec<u8> {
        let mut prefix = target_prefix(&self.target);
        prefix.extend(self.graph.0);
        prefix
    }

    /// What the keys in the table of structures begin with: the target and the structure. The graph hash follows.
    pub(super) fn structure_prefix(&self, structure: Digest) -> Vec<u8> {
        let mut prefix = target_prefix(&self.target);
        prefix.extend(structure.0);
        prefix
    }

    /// Its key in the table of structures.
    pub(super) fn structure_key(&self, structure: Digest) -> Vec<u8> {
        let mut key = self.structure_prefix(structure);
        key.extend(self.graph.0);
        key
    }

    /// The key of a measurement: the prefix, the digest of the configuration, the id, and the tag of the reporter.
    pub(super) fn key(&self, config: &[u8], id: &[u8], reporter: &Reporter) -> Vec<u8> {
        let mut key = self.prefix();
        // A digest, because configurations can be long. Its fixed length separates it from the id.
        key.extend(config_digest(config).0);
        key.extend(id);
        key.extend(reporter.tag());
        key
    }

    /// What the keys of a reporter's measurements begin with in the table of reporters' keys.
    pub(super) fn reporter_prefix(&self, reporter: &Reporter) -> Vec<u8> {
        let mut prefix = self.prefix();
        prefix.extend(reporter.tag());
        prefix
    }

    /// The subject of a key, and the id with the tag of the reporter; `None` if it is none of [`Self::key`].
    pub(super) fn of_key(key: &[u8]) -> Option<(Self, &[u8])> {
        let (subject, rest) = Self::of_start(key)?;
        let (_, id) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        Some((subject, id))
    }

    /// The digest of the configuration of a key; `None` if it is none of [`Self::key`].
    pub(super) fn config_of_key(key: &[u8]) -> Option<Digest> {
        let (_, rest) = Self::of_start(key)?;
        rest.first_chunk().copied().map(Digest)
    }

    /// The subject of a prefix; `None` if it is none of [`Self::prefix`].
    pub(super) fn of_prefix(prefix: &[u8]) -> Option<Self> {
        let (subject, rest) = Self::of_start(prefix)?;
        rest.is_empty().then_some(subject)
    }

    fn of_start(key: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = key.split_first_chunk()?;
        let (target, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (graph, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let target = std::str::from_utf8(target).ok()?.to_owned();
        Some((
            Self {
                target,
                graph: Digest(*graph),
            },
            rest,
        ))
    }
}

impl MeasurementFilter {
    /// What their keys begin with.
    pub(super) fn prefix(&self) -> Vec<u8> {
        match (&self.target, self.graph) {
            // Keys begin with the target, so a graph without one has no prefix; calls refuse it.
            (None, _) => Vec::new(),
            (Some(target), None) => target_prefix(target),
            (Some(target), Some(graph)) => Subject {
                target: target.clone(),
                graph,
            }
            .prefix(),
        }
    }

    /// Whether a measurement whose key begins with the prefix is one of them.
    pub(super) fn includes(&self, key: &[u8], record: &[u8]) -> bool {
        let reporter = self.reporter.as_ref();
        let before = self.reported_before.map(time_key);
        reporter.is_none_or(|reporter| key.ends_with(&reporter.tag()))
            && before.is_none_or(|before| *record < before[..])
    }
}

impl ReporterFilter {
    /// The reporter whose measurements are drawn first.
    pub(crate) fn first(&self) -> Option<&Reporter> {
        match self {
            Self::Everyone => None,
            Self::First(reporter) | Self::Only(reporter) => Some(reporter),
        }
    }
}

impl Reporter {
    /// Returns the reporter of this name; `None` if the name is empty.
    pub fn named(name: &str) -> Option<Self> {
        (!name.is_empty()).then(|| Self(name.into()))
    }

    /// Its name.
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

/// What the keys of all measurements of a target begin with.
fn target_prefix(target: &str) -> Vec<u8> {
    // With its length first, no target is the beginning of another one.
    let length = u16::try_from(target.len()).unwrap_or(u16::MAX);
    let mut prefix = length.to_be_bytes().to_vec();
    prefix.extend(&target.as_bytes()[..length.into()]);
    prefix
}

/// The first key after all that begin with a prefix; `None` if there is none.
pub(super) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    // 255 has no successor, so the byte before it counts up, as in a sum with a carry.
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The key of a measurement in the table of reporters' keys: the tag of the reporter comes before the configuration.
pub(super) fn reporter_key(subject_bytes: usize, key: &[u8]) -> Vec<u8> {
    let (rest, tag) = key.split_at(key.len() - TAG_BYTES);
    [&rest[..subject_bytes], tag, &rest[subject_bytes..]].concat()
}

/// The key of a measurement, given its key in the table of reporters' keys.
pub(super) fn key_of_reporter_key(subject_bytes: usize, key: &[u8]) -> Vec<u8> {
    let (subject, rest) = key.split_at(subject_bytes);
    let (tag, rest) = rest.split_at(TAG_BYTES);
    [subject, rest, tag].concat()
}

/// Bytes of the time of a report. A record begins with them, in the order of a number's digits, so that the database sorts
/// records by time.
pub(super) const TIME_BYTES: usize = size_of::<u64>();

/// What the records of measurements begin with that were reported at this time.
pub(super) fn time_key(reported_at: u64) -> [u8; TIME_BYTES] {
    reported_at.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_key_that_lacks_it() {
        assert_eq!(end_of_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(end_of_prefix(&[1, 255, 255]), Some(vec![2]));
        assert_eq!((end_of_prefix(&[255]), end_of_prefix(&[])), (None, None));
    }

    #[test]
    fn a_key_gives_subject_and_id_back() {
        let reporter = Reporter::named("ci").unwrap();
        let subject = Subject {
            target: "a board".to_owned(),
            graph: Digest([7; 32]),
        };
        let key = subject.key(b"config", b"id", &reporter);
        let id = [b"id", &reporter.tag()[..]].concat();
        assert_eq!(Subject::of_key(&key), Some((subject.clone(), &id[..])));
        assert_eq!(Subject::of_key(&key[..key.len() - id.len() - 1]), None);
        let bytes = subject.prefix().len();
        let by_reporter = reporter_key(bytes, &key);
        assert!(by_reporter.starts_with(&subject.reporter_prefix(&reporter)));
        assert_eq!(key_of_reporter_key(bytes, &by_reporter), key);
        let subject = Subject {
            target: String::new(),
            graph: Digest([1; 32]),
        };
        assert_eq!(Subject::of_prefix(&key), None);
        assert_eq!(Subject::of_prefix(&subject.prefix()), Some(subject));
        assert_eq!(Subject::of_key(b""), None);
    }

    #[test]
    fn no_prefix_of_a_target_is_that_of_another() {
        let [short, long] = ["a", "ab"].map(target_prefix);
        assert!(!long.starts_with(&short));
    }

    #[test]
    fn reporters_of_different_names_have_different_tags() {
        let [one, other] = ["ci", "192.0.2.7"].map(|name| Reporter::named(name).unwrap());
        assert_ne!(one.tag(), other.tag());
        assert_eq!(Reporter::named(""), None);
    }
}
