use redb::{ReadableTable as _, Table, WriteTransaction};

use super::{
    KeptGraph, Reporter, Subject,
    file::{GRAPHS, STRUCTURES, SUBJECTS, unreadable},
    graph::{Kind, bytes_of_graph},
};

/// The tables of graphs, while they are written.
pub(super) struct GraphTables<'a> {
    messages: Table<'a, &'static [u8], &'static [u8]>,
    kinds: Table<'a, &'static [u8], &'static [u8]>,
    structures: Table<'a, &'static [u8], ()>,
}

impl<'a> GraphTables<'a> {
    pub(super) fn open(write: &'a WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            messages: write.open_table(GRAPHS)?,
            kinds: write.open_table(SUBJECTS)?,
            structures: write.open_table(STRUCTURES)?,
        })
    }

    /// Returns whether the graph of a subject is kept.
    pub(super) fn has(&self, subject: &Subject) -> Result<bool, redb::Error> {
        Ok(self.kinds.get(subject.prefix().as_slice())?.is_some())
    }

    pub(super) fn insert(
        &mut self,
        subject: &Subject,
        graph: &KeptGraph,
    ) -> Result<(), redb::Error> {
        let key = subject.prefix();
        let kind = graph.kind().record();
        let structure = subject.structure_key(graph.structure);
        self.messages.insert(&key[..], &graph.message[..])?;
        self.kinds.insert(&key[..], &kind[..])?;
        self.structures.insert(&structure[..], ())?;
        Ok(())
    }

    /// Removes the first graphs whose keys have this prefix. Returns who brought each, and its bytes.
    pub(super) fn remove(
        &mut self,
        prefix: &[u8],
        count: usize,
    ) -> Result<Vec<(Option<Reporter>, u64)>, redb::Error> {
        let mut removed = Vec::new();
        for entry in self.kinds.range(prefix..)?.take(count) {
            let (key, kind) = entry?;
            if !key.value().starts_with(prefix) {
                break;
            }
            let kind = Kind::of_record(kind.value()).ok_or_else(unreadable)?;
            let subject = Subject::of_prefix(key.value()).ok_or_else(unreadable)?;
            removed.push((subject, kind));
        }
        let mut freed = Vec::new();
        for (subject, kind) in removed {
            let key = subject.prefix();
            let structure = subject.structure_key(kind.structure);
            let message = self.messages.remove(&key[..])?;
            let message_bytes = message.map_or(0, |message| message.value().len());
            self.kinds.remove(&key[..])?;
            self.structures.remove(&structure[..])?;
            let bytes = bytes_of_graph(&subject, &kind, message_bytes);
            freed.push((kind.reporter, bytes));
        }
        Ok(freed)
    }
}
