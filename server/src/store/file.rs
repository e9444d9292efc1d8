use std::{
    fs::File,
    io,
    ops::Bound,
    panic::{self, AssertUnwindSafe, UnwindSafe},
    path::{Path, PathBuf},
};

use hlorank_graph::{Digest, Task};
use parking_lot::RwLock;
use redb::{
    Builder, Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition, TableError, WriteTransaction,
};

use super::{
    KeptGraph, Measurement, Page, StoreError, Subject,
    chosen::ChosenKeys,
    error::{OpenStoreError, Unusable},
    graph::Kind,
    page::{MAX_PAGE_BYTES, MAX_SCANNED},
    reporter_table::REPORTERS,
    stored_view::StoredView,
};

/// The records by key.
pub(super) const MEASUREMENTS: TableDefinition<'_, &[u8], &[u8]> =
    TableDefinition::new("measurements");

/// The compressed messages of graphs by subject.
pub(super) const GRAPHS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("graphs");

/// The [`Kind`] of each of these graphs by subject. A list of subjects reads none of the large messages.
pub(super) const SUBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("subjects");

/// The same subjects by target, structure and graph hash.
pub(super) const STRUCTURES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("structures");

/// Numbers about the file.
pub(super) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");

/// Name of the format in [`FACTS`].
const FORMAT: &str = "format";

/// Name of the number of bytes of all keys, records and graphs in [`FACTS`].
pub(super) const BYTES: &str = "bytes";

/// The format that this version writes and reads.
const CURRENT_FORMAT: u64 = 4;

/// The format before, which has no reporters. It is read, and becomes the current one.
const FORMAT_WITHOUT_REPORTERS: u64 = 3;

/// The formats before that, which have no graphs, or graphs without a structure. They become the current one, too.
const FORMATS_WITHOUT_STRUCTURES: [u64; 2] = [1, 2];

/// Memory for pages of the file.
const CACHE_BYTES: usize = 16 << 20;

/// The file of measurements.
pub(super) struct StoreFile {
    path: PathBuf,
    /// `None` after it failed or was closed.
    database: RwLock<Option<Opened>>,
}

/// The open file.
struct Opened {
    database: Database,
    /// Whether it can only be read, because it could not be written.
    is_view: bool,
}

/// How much the file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) measurements: u64,
    /// Bytes of all keys, records and graphs.
    pub(super) bytes: u64,
}

impl StoreFile {
    /// Opens a file, and reads all of it to check it. Creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, OpenStoreError> {
        let opened = open_unless_panicking(path).map_err(|reason| OpenStoreError {
            at: path.display().to_string(),
            reason,
        })?;
        let opened = Opened {
            database: opened,
            is_view: false,
        };
        Ok(Self {
            path: path.to_owned(),
            database: RwLock::new(Some(opened)),
        })
    }

    /// Opens the file again if it cannot be written, after a failure.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let mut opened = self.database.write();
        if opened.as_ref().is_none_or(|opened| opened.is_view) {
            // It is locked for as long as it is open.
            *opened = None;
            let database = open_unless_panicking(&self.path).map_err(|reason| failed(&reason))?;
            *opened = Some(Opened {
                database,
                is_view: false,
            });
        }
        Ok(())
    }

    /// Opens the file to be read, if it is not open.
    pub(super) fn reopen_to_read(&self) -> Result<(), StoreError> {
        let mut opened = self.database.write();
        if opened.is_none() {
            let database = view_unless_panicking(&self.path).map_err(|reason| failed(&reason))?;
            *opened = Some(Opened {
                database,
                is_view: true,
            });
        }
        Ok(())
    }

    /// Closes the file once nobody reads it.
    pub(super) fn close(&self) {
        *self.database.write() = None;
    }

    /// Does something with the open file. redb panics if a page was damaged after it was opened.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let opened = self.database.read();
        let opened = opened
            .as_ref()
            .ok_or_else(|| failed(&"the file is not open"))?;
        // What a transaction has not committed is not in the file, so a panic leaves that as it
        // was.
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(&opened.database)));
        Ok(done.map_err(|_| StoreError::Failed("the file is damaged".to_owned()))??)
    }

    pub(super) fn totals(&self) -> Result<Totals, StoreError> {
        self.with(|database| {
            let read = database.begin_read()?;
            let bytes = read
                .open_table(FACTS)?
                .get(BYTES)?
                .map_or(0, |bytes| bytes.value());
            Ok(Totals {
                measurements: read.open_table(MEASUREMENTS)?.len()?,
                bytes,
            })
        })
    }

    /// Reads at most `count` of the chosen measurements, from the first one after the key `after`.
    pub(super) fn page(
        &self,
        chosen: &ChosenKeys,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Page, StoreError> {
        self.with(|database| {
            let table = database.begin_read()?.open_table(MEASUREMENTS)?;
            let prefix = chosen.prefix.as_slice();
            // A key before the chosen ones is no place among them, so the page begins with the
            // first.
            let after = after.filter(|after| *after >= prefix);
            let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
            let mut page = Page::default();
            let mut last = None;
            let mut bytes = 0;
            for (scanned, entry) in table.range::<&[u8]>((start, Bound::Unbounded))?.enumerate() {
                let (key, record) = entry?;
                let key = key.value();
                let record = record.value();
                if !key.starts_with(prefix) {
                    return Ok(page);
                }
                // Only another key shows that a page is not the last one, so the check comes after
                // it. The next page begins behind the last key of this one, whether that was chosen
                // or not.
                let is_full = page.measurements.len() >= count || bytes >= MAX_PAGE_BYTES;
                if is_full || scanned >= MAX_SCANNED {
                    page.next = last;
                    return Ok(page);
                }
                last = Some(key.to_vec());
                if chosen.has_tag_of(key) {
                    let measurement = Measurement::read(key, record).ok_or_else(unreadable)?;
                    page.measurements.push(measurement);
                    bytes += key.len() + record.len();
                }
            }
            Ok(page)
        })
    }
}

impl StoreFile {
    /// Returns the graph of a subject, if it is kept.
    pub(super) fn graph(&self, subject: &Subject) -> Result<Option<KeptGraph>, StoreError> {
        self.with(|database| {
            let key = subject.prefix();
            let read = database.begin_read()?;
            let kinds = read.open_table(SUBJECTS)?;
            let graphs = read.open_table(GRAPHS)?;
            let Some(kind) = kinds.get(&key[..])? else {
                return Ok(None);
            };
            let kind = Kind::of_record(kind.value()).ok_or_else(unreadable)?;
            let message = graphs.get(&key[..])?.ok_or_else(unreadable)?;
            Ok(Some(kind.with_message(message.value().to_vec())))
        })
    }

    /// Returns whether the graph of a subject is kept.
    pub(super) fn has_graph(&self, subject: &Subject) -> Result<bool, StoreError> {
        self.with(|database| {
            let subjects = database.begin_read()?.open_table(SUBJECTS)?;
            Ok(subjects.get(subject.prefix().as_slice())?.is_some())
        })
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, from the first one after `after`.
    pub(super) fn subjects(
        &self,
        after: Option<&Subject>,
        count: usize,
    ) -> Result<Vec<(Subject, Task)>, StoreError> {
        self.with(|database| {
            let subjects = database.begin_read()?.open_table(SUBJECTS)?;
            let after = after.map(Subject::prefix);
            let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let some = subjects
                .range::<&[u8]>((start, Bound::Unbounded))?
                .take(count);
            let read = some.map(|entry| {
                let (key, kind) = entry?;
                kept_subject(key.value(), kind.value())
            });
            read.collect()
        })
    }

    /// Returns at most `count` other subjects on the target of one whose graphs have this structure: those with the lowest
    /// hashes.
    pub(super) fn alike(
        &self,
        subject: &Subject,
        structure: Digest,
        count: usize,
    ) -> Result<Vec<Subject>, StoreError> {
        self.with(|database| {
            let structures = database.begin_read()?.open_table(STRUCTURES)?;
            let prefix = subject.structure_prefix(structure);
            let mut alike = Vec::new();
            for entry in structures.range::<&[u8]>(prefix.as_slice()..)? {
                let (key, _) = entry?;
                let Some(graph) = key.value().strip_prefix(prefix.as_slice()) else {
                    break;
                };
                let graph = Digest(graph.try_into().map_err(|_| unreadable())?);
                if graph != subject.graph {
                    alike.push(Subject {
                        target: subject.target.clone(),
                        graph,
                    });
                }
                if alike.len() == count {
                    break;
                }
            }
            Ok(alike)
        })
    }
}

fn kept_subject(key: &[u8], kind: &[u8]) -> Result<(Subject, Task), redb::Error> {
    let subject = Subject::of_prefix(key).ok_or_else(unreadable)?;
    let kind = Kind::of_record(kind).ok_or_else(unreadable)?;
    Ok((subject, kind.task))
}

/// Returns the bytes of all keys, records and graphs, in a transaction that may change them.
pub(super) fn held(write: &WriteTransaction) -> Result<u64, redb::Error> {
    let facts = write.open_table(FACTS)?;
    let bytes = facts.get(BYTES)?;
    Ok(bytes.map_or(0, |bytes| bytes.value()))
}

pub(super) fn unreadable() -> redb::Error {
    redb::Error::Corrupted("a record is unreadable".to_owned())
}

fn failed(reason: &dyn ToString) -> StoreError {
    StoreError::Failed(reason.to_string())
}

/// Opens a file. redb panics on some damaged ones.
fn open_unless_panicking(path: &Path) -> Result<Database, Unusable> {
    unless_panicking(|| open(path))
}

/// Opens a file to be read, and leaves it as it is.
fn view_unless_panicking(path: &Path) -> Result<Database, Unusable> {
    unless_panicking(|| {
        let view = StoredView::open(path).map_err(Unusable::Io)?;
        Ok(Builder::new()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(view)?)
    })
}

fn unless_panicking(
    open: impl FnOnce() -> Result<Database, Unusable> + UnwindSafe,
) -> Result<Database, Unusable> {
    let opened = panic::catch_unwind(open);
    opened.unwrap_or_else(|_| Err(Unusable::Damaged("a page is unreadable".to_owned())))
}

fn open(path: &Path) -> Result<Database, Unusable> {
    let is_new = !path.exists();
    let mut database = Builder::new().set_cache_size(CACHE_BYTES).create(path)?;
    // Reads every page, so that damage shows at the start rather than in a call.
    if !database.check_integrity()? {
        tracing::warn!(path = %path.display(), "the file of measurements was not closed properly, and was repaired");
    }
    check_format(&database)?;
    if is_new {
        // Otherwise a power cut could lose the name of the file.
        sync_folder(path).map_err(Unusable::Io)?;
    }
    Ok(database)
}

/// Writes the names in the folder of a file to the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Checks the format of a file, or sets that of an empty one.
fn check_format(database: &Database) -> Result<(), Unusable> {
    match format(database)? {
        Some(CURRENT_FORMAT) => Ok(()),
        Some(FORMAT_WITHOUT_REPORTERS) => Ok(begin_reporters(database)?),
        Some(older) if FORMATS_WITHOUT_STRUCTURES.contains(&older) => Ok(begin_graphs(database)?),
        Some(found) => Err(Unusable::OtherFormat {
            found,
            known: CURRENT_FORMAT,
        }),
        None => Ok(begin(database)?),
    }
}

fn format(database: &Database) -> Result<Option<u64>, Unusable> {
    let read = database.begin_read().map_err(redb::Error::from)?;
    match read.open_table(FACTS) {
        Ok(facts) => {
            let format = facts.get(FORMAT)?.map(|format| format.value());
            format
                .map(Some)
                .ok_or_else(|| Unusable::Damaged("it has no format".to_owned()))
        }
        // A file without any table is new. One with other tables is of another program, and is left
        // alone.
        Err(TableError::TableDoesNotExist(_)) if read.list_tables()?.next().is_none() => Ok(None),
        Err(error) => Err(redb::Error::from(error).into()),
    }
}

/// Measurements that are kept already have no reporter.
fn begin_reporters(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    write.open_table(REPORTERS)?;
    write.open_table(FACTS)?.insert(FORMAT, CURRENT_FORMAT)?;
    Ok(write.commit()?)
}

/// Removes graphs without a structure. A graph is kept again with the next measurement of it that is reported.
fn begin_graphs(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    write.delete_table(GRAPHS)?;
    write.delete_table(SUBJECTS)?;
    // The measurements alone are left, so their bytes are the new sum.
    let mut bytes = 0;
    for entry in write.open_table(MEASUREMENTS)?.iter()? {
        let (key, record) = entry?;
        bytes += (key.value().len() + record.value().len()) as u64;
    }
    create_tables(&write, bytes)?;
    Ok(write.commit()?)
}

fn begin(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    create_tables(&write, 0)?;
    Ok(write.commit()?)
}

fn create_tables(write: &WriteTransaction, bytes: u64) -> Result<(), redb::Error> {
    write.open_table(MEASUREMENTS)?;
    write.open_table(GRAPHS)?;
    write.open_table(SUBJECTS)?;
    write.open_table(STRUCTURES)?;
    write.open_table(REPORTERS)?;
    let mut facts = write.open_table(FACTS)?;
    facts.insert(FORMAT, CURRENT_FORMAT)?;
    facts.insert(BYTES, bytes)?;
    Ok(())
}
