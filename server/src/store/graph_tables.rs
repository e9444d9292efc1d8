use redb::{ReadableTable as _, Table, WriteTransaction};

use super::{
    KeptGraph, Reporter, Subject,
    file::{GRAPHS, STRUCTURES, SUBJECTS, unreadable},
    graph::{Kind, bytes_of_graph},
};

/// Bytes that something took which was removed, and who reported or brought it.
pub(super) struct Freed {
    pub(super) reporter: Option<Reporter>,
    pub(super) bytes: u64,
}

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

    /// Removes the graph of a subject, if it is kept.
    pub(super) fn remove(&mut self, subject: &Subject) -> Result<Option<Freed>, redb::Error> {
        let key = subject.prefix();
        let Some(record) = self.kinds.remove(&key[..])? else {
            return Ok(None);
        };
        let kind = Kind::of_record(record.value()).ok_or_else(unreadable)?;
        // The key in the table of structures begins with the structure, which only the kind knows.
        let structure = subject.structure_key(kind.structure);
        self.structures.remove(&structure[..])?;
        let message = self.messages.remove(&key[..])?;
        let length = message.map_or(0, |message| message.value().len());
        Ok(Some(Freed {
            bytes: bytes_of_graph(subject, &kind, length),
            reporter: kind.reporter,
        }))
    }
}
