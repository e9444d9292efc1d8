use hlorank_graph::Digest;

use super::{
    Reporter, Subject,
    key::target_prefix,
    reporter::{TAG_BYTES, Tag},
};

/// Which measurements a call is about. The default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Those of a target; `None` for all.
    pub target: Option<String>,
    /// Those of one graph on the target; `None` for all.
    pub graph: Option<Digest>,
    /// Those of a reporter; `None` for all.
    pub reporter: Option<Reporter>,
}

/// The same, as keys show it.
#[derive(Clone, Debug)]
pub(super) struct ChosenKeys {
    /// What the keys begin with.
    pub(super) prefix: Vec<u8>,
    /// Who reported them; `None` for anybody.
    pub(super) reporter: Option<Reporter>,
    /// What the keys end with; `None` for anything.
    tag: Option<Tag>,
}

impl Chosen {
    /// Those of all graphs on a target.
    #[must_use]
    pub fn of_target(target: &str) -> Self {
        Self {
            target: Some(target.to_owned()),
            ..Self::default()
        }
    }

    /// Those of one graph on a target.
    #[must_use]
    pub fn of_subject(subject: &Subject) -> Self {
        Self {
            graph: Some(subject.graph),
            ..Self::of_target(&subject.target)
        }
    }

    /// Of these, those of a reporter, if one is given.
    #[must_use]
    pub fn by(self, reporter: Option<Reporter>) -> Self {
        Self { reporter, ..self }
    }

    pub(super) fn keys(&self) -> ChosenKeys {
        let prefix = match (&self.target, self.graph) {
            // Keys begin with the target, so a graph without one has no prefix; calls refuse it.
            (None, _) => Vec::new(),
            (Some(target), None) => target_prefix(target),
            (Some(target), Some(graph)) => Subject {
                target: target.clone(),
                graph,
            }
            .prefix(),
        };
        let tag = self.reporter.as_ref().map(Reporter::tag);
        ChosenKeys {
            prefix,
            reporter: self.reporter.clone(),
            tag,
        }
    }
}

impl ChosenKeys {
    /// Whether a key that begins with the prefix is one of them. Only keys without a reporter, whose ids a client chose before
    /// reporters were kept, could end with the tag of another.
    pub(super) fn has_tag_of(&self, key: &[u8]) -> bool {
        self.tag
            .is_none_or(|tag| key.last_chunk::<TAG_BYTES>() == Some(&tag))
    }
}
