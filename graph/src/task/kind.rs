use hlorank_proto::v1;

use super::{Element, Scope};

/// The facts about one kind of configuration.
#[derive(Debug)]
pub struct Kind {
    /// Name in manifests, settings and messages.
    pub name: &'static str,
    /// Number on the wire.
    pub wire: v1::Task,
    /// What one configuration is about.
    pub scope: Scope,
    /// Element type of the model input `config`.
    pub element: Element,
    /// Values per configuration ([`Scope::Kernel`]) or per configurable node ([`Scope::Nodes`]); 0 if the model takes no
    /// configurations ([`Scope::Program`]) or if its feature set decides ([`Scope::EveryNode`]).
    pub width: usize,
    /// Name of the array of configurations in an npz file.
    pub array: &'static str,
}

impl Kind {
    /// Number in the canonical form of a graph: the number on the wire.
    #[must_use]
    pub fn number(&self) -> u8 {
        u8::try_from(i32::from(self.wire)).unwrap_or(u8::MAX)
    }
}
