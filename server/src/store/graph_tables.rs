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

    /// Returns the bytes that a graph would add; `None` if it is kept already.
    pub(super) fn missing(
        &self,
        subject: &Subject,
        graph: &KeptGraph,
    ) -> Result<Option<u64>, redb::Error> {
        let is_kept = self.kinds.get(subject.prefix().as_slice())?.is_some();
        Ok((!is_kept).then(|| graph.bytes_for(subject)))
    }

    pub(super) fn insert(
        &mut self,
        subject: &Subject,
        graph: &KeptGraph,
    ) -> Result<(), redb::Error> {
        let (key, kind) = (subject.prefix(), graph.kind());
        self.messages
            .insert(key.as_slice(), graph.message.as_slice())?;
        self.kinds
            .insert(key.as_slice(), kind.record().as_slice())?;
        self.structures
            .insert(subject.structure_key(graph.structure).as_slice(), ())?;
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
            removed.push((
                Subject::of_prefix(key.value()).ok_or_else(unreadable)?,
                kind,
            ));
        }
        let mut freed = Vec::new();
        for (subject, kind) in removed {
            let key = subject.prefix();
            let message = self
                .messages
                .remove(key.as_slice())?
                .map_or(0, |message| message.value().len());
            self.kinds.remove(key.as_slice())?;
            self.structures
                .remove(subject.structure_key(kind.structure).as_slice())?;
            let bytes = bytes_of_graph(&subject, &kind, message);
            freed.push((kind.reporter, bytes));
        }
        Ok(freed)
    }
}
