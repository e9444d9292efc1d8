//! What is decided, and which decision answers. A decision is never changed: it is superseded by one of the next generation, which
//! readers of an earlier snapshot do not see.

use std::collections::HashSet;

use super::{Reporter, StoreError, target_parts};

/// What a decision is about.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct DecisionSubject {
    /// Whose keys they are.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// The key.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
    /// The target in its [canonical form](super::canonical_target).
    #[prost(string, tag = "3")]
    pub target: String,
}

/// A decision as it is kept. Fields may be added.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StoredDecision {
    /// What it is about.
    #[prost(message, required, tag = "1")]
    pub subject: DecisionSubject,
    /// The only client that it answers; empty for all.
    #[prost(string, tag = "2")]
    pub audience: String,
    /// Its number among those of its subject and audience, from 1.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// Its number among all, from 1.
    #[prost(uint64, tag = "4")]
    pub snapshot: u64,
    /// The value.
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
    /// What it rests on, in the bytes of its message.
    #[prost(bytes = "vec", tag = "6")]
    pub evidence: Vec<u8>,
    /// Who proposed it.
    #[prost(string, tag = "7")]
    pub reporter: String,
    /// When, in seconds since 1970.
    #[prost(uint64, tag = "8")]
    pub decided_at: u64,
}

/// A decision to look up.
#[derive(Clone, Debug)]
pub struct DecisionLookup {
    /// What it is about.
    pub subject: DecisionSubject,
    /// Who asks: what this client decided for itself comes before what is decided for all. `None` for nobody.
    pub client: Option<Reporter>,
    /// The snapshot to read; 0 for the latest.
    pub snapshot: u64,
    /// Whether nothing younger than the snapshot answers.
    pub strict: bool,
    /// Whether decisions on similar targets are read, if there is none on this one.
    pub with_near: bool,
}

/// What a lookup found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecisionView {
    /// The decision.
    pub decision: Option<StoredDecision>,
    /// Decisions of the same key on other targets with the same device.
    pub near: Vec<StoredDecision>,
    /// The latest snapshot.
    pub snapshot: u64,
}

/// A decision to make.
#[derive(Clone, Debug)]
pub struct DecisionProposal {
    /// What it is about.
    pub subject: DecisionSubject,
    /// Whether it answers its proposer alone.
    pub for_itself: bool,
    /// Who proposes it.
    pub reporter: Reporter,
    /// The generation that it supersedes; 0 for a first decision.
    pub supersede: u64,
    /// The value.
    pub value: Vec<u8>,
    /// What it rests on, in the bytes of its message.
    pub evidence: Vec<u8>,
    /// In seconds since 1970.
    pub decided_at: u64,
}

/// Which decisions to list.
#[derive(Clone, Debug)]
pub struct DecisionFilter {
    /// Those of a namespace, a target or a key; empty for all.
    pub subject: DecisionSubject,
    /// Who asks: what others decided for themselves is not listed.
    pub client: Reporter,
    /// Whether superseded ones are listed, too.
    pub all_generations: bool,
    /// Only those after this snapshot.
    pub after: u64,
}

/// Decisions in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecisionPage {
    /// The decisions.
    pub decisions: Vec<StoredDecision>,
    /// The snapshot after which the next page begins, if there may be more.
    pub next: Option<u64>,
    /// The latest snapshot.
    pub snapshot: u64,
}

/// What a token with only the scope `read` may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReaderDecisions {
    /// Nothing: it looks up what others decided.
    Off,
    /// What it alone is answered.
    Own,
    /// What everybody is answered.
    All,
}

/// Maximum number of decisions on similar targets, and of bytes of their values.
pub(super) const MAX_NEAR: usize = 16;
pub(super) const MAX_NEAR_BYTES: usize = 128 << 10;

/// Maximum number of decisions of a key on any target that are looked at for those on similar ones.
pub(super) const MAX_NEAR_SCANNED: usize = 1_024;

/// Chooses the decision that answers among those of one subject, newest first, each with its snapshot: the latest one up to the
/// snapshot that is asked for (0 for any) or, unless that is strict, the first one ever made. Therefore a decision that is made
/// later never changes an answer, except that of a strict lookup from none to none.
pub(super) fn chosen<T>(
    newest_first: impl IntoIterator<Item = (u64, T)>,
    snapshot: u64,
    strict: bool,
) -> Option<T> {
    let mut first = None;
    for (made, decision) in newest_first {
        if snapshot == 0 || made <= snapshot {
            return Some(decision);
        }
        first = Some(decision);
    }
    first.filter(|_| !strict)
}

impl DecisionSubject {
    /// What the keys of its decisions for an audience begin with.
    pub(super) fn prefix(&self, audience: &str) -> Vec<u8> {
        let mut prefix = self.key_prefix(audience);
        extend(&mut prefix, self.target.as_bytes());
        prefix
    }

    /// What the keys of decisions of its key for an audience on any target begin with.
    pub(super) fn key_prefix(&self, audience: &str) -> Vec<u8> {
        let mut prefix = Vec::new();
        for part in [self.namespace.as_bytes(), audience.as_bytes(), &self.key] {
            extend(&mut prefix, part);
        }
        prefix
    }

    /// Whether another subject is one that this names; an empty name stands for all.
    fn includes(&self, of: &Self) -> bool {
        let is = |name: &[u8], other: &[u8]| name.is_empty() || name == other;
        is(self.namespace.as_bytes(), of.namespace.as_bytes())
            && is(&self.key, &of.key)
            && is(self.target.as_bytes(), of.target.as_bytes())
    }
}

/// Adds a part to a key, with its length first, so that no part is the beginning of another one.
fn extend(key: &mut Vec<u8>, part: &[u8]) {
    let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
    key.extend(length.to_be_bytes());
    key.extend(part);
}

impl StoredDecision {
    /// Its key, which ends with the generation.
    pub(super) fn index_key(&self) -> Vec<u8> {
        generation_key(self.subject.prefix(&self.audience), self.generation)
    }

    /// Bytes that it takes with its keys.
    pub(super) fn bytes(&self) -> u64 {
        let keys = self.index_key().len() + 2 * size_of::<u64>();
        (keys + prost::Message::encoded_len(self)) as u64
    }
}

/// The key of a generation.
pub(super) fn generation_key(mut prefix: Vec<u8>, generation: u64) -> Vec<u8> {
    prefix.extend(generation.to_be_bytes());
    prefix
}

/// The target of a key that begins with [`DecisionSubject::key_prefix`] of this length.
pub(super) fn target_of_key(key: &[u8], prefix: usize) -> Option<&str> {
    let (target, _) = key.get(prefix + 2..)?.split_last_chunk::<8>()?;
    std::str::from_utf8(target).ok()
}

/// Chooses the decisions on similar targets among those of one key, of each target newest first. `target` is the target of a
/// decision, and the number its snapshot.
pub(super) fn similar<'a>(
    subject: &DecisionSubject,
    snapshot: u64,
    rows: impl IntoIterator<Item = (&'a str, u64)>,
) -> Vec<u64> {
    let mut seen = HashSet::new();
    let is_similar = |(target, made): &(&'a str, u64)| {
        (snapshot == 0 || *made <= snapshot)
            && *target != subject.target
            && target_parts::have_same_device(target, &subject.target)
            && seen.insert(*target)
    };
    let similar = rows.into_iter().filter(is_similar);
    similar.map(|(_, made)| made).take(MAX_NEAR).collect()
}

impl DecisionLookup {
    /// The audiences whose decisions answer, in this order.
    pub(super) fn audiences(&self) -> [&str; 2] {
        [self.client.as_ref().map_or("", Reporter::name), ""]
    }
}

impl DecisionFilter {
    /// Whether a decision of the latest generation, or of any if all are listed, is one of them.
    pub(super) fn includes(&self, decision: &StoredDecision) -> bool {
        let is_shown = ["", self.client.name()].contains(&&*decision.audience);
        is_shown && self.subject.includes(&decision.subject)
    }
}

impl DecisionProposal {
    /// Whom the decision answers.
    pub(super) fn audience(&self) -> &str {
        if self.for_itself {
            self.reporter.name()
        } else {
            ""
        }
    }

    /// The audiences whose latest decision the proposal must know, in this order.
    pub(super) fn audiences(&self) -> [&str; 2] {
        // What supersedes a decision for all must not be held up by one that the admin made for itself.
        if self.supersede > 0 {
            [""; 2]
        } else {
            [self.reporter.name(), ""]
        }
    }

    /// Returns the decision to store after the latest one; nothing if that one is the answer.
    pub(super) fn after(
        self,
        latest: Option<&StoredDecision>,
        snapshot: u64,
    ) -> Result<Option<StoredDecision>, StoreError> {
        let current = latest.map_or(0, |latest| latest.generation);
        if current != self.supersede {
            // A proposal whose answer was lost is sent again, and is then the latest.
            let is_repeated = current == self.supersede + 1
                && latest.is_some_and(|latest| latest.value == self.value);
            return if self.supersede == 0 || is_repeated {
                Ok(None)
            } else {
                Err(StoreError::OtherGeneration {
                    found: self.supersede,
                    latest: current,
                })
            };
        }
        Ok(Some(StoredDecision {
            audience: self.audience().to_owned(),
            generation: current + 1,
            snapshot: snapshot + 1,
            subject: self.subject,
            value: self.value,
            evidence: self.evidence,
            reporter: self.reporter.name().to_owned(),
            decided_at: self.decided_at,
        }))
    }
}
