use std::{
    collections::HashSet,
    fs::File,
    io,
    ops::Bound,
    panic::{self, AssertUnwindSafe, UnwindSafe},
    path::{Path, PathBuf},
};

use hlorank_graph::{Digest, Task};
use parking_lot::RwLock;
use redb::{
    Builder, Database, ReadOnlyTable, ReadableDatabase as _, ReadableTableMetadata as _, TableError,
};

use super::{
    tables::{
        BYTES, FACTS, GRAPHS, MAX_SCANNED, MEASUREMENTS, REPORTERS_KEYS, STRUCTURES, SUBJECTS,
        Tables, unreadable,
    },
    view::StoredView,
};
use crate::store::{
    Chosen, KeptGraph, Measurement, OpenStoreError, Page, StoreError, Subject, Unusable, Whose,
    graph::Kind,
    key::{DIGEST_BYTES, end_of_prefix, key_of_reporter_key},
    measurement::MAX_PAGE_BYTES,
};

/// Name of the format in [`FACTS`].
const FORMAT: &str = "format";

/// The format that this version writes and reads.
const CURRENT_FORMAT: u64 = 5;

/// Memory for pages of the file.
const CACHE_BYTES: usize = 16 << 20;

/// The file of measurements.
pub(in crate::store) struct StoreFile {
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
            let bytes = read.open_table(FACTS)?.get(BYTES)?;
            Ok(Totals {
                measurements: read.open_table(MEASUREMENTS)?.len()?,
                bytes: bytes.map_or(0, |bytes| bytes.value()),
            })
        })
    }

    /// Draws the keys of at most `count` measurements of a graph: the first of every configuration, then the second of every
    /// configuration that has one, and so on. Configurations come in the order of their digests, which is a fixed draw, so that no
    /// configuration takes the place of another, however often it was measured.
    pub(in crate::store) fn draw(
        &self,
        subject: &Subject,
        whose: &Whose,
        count: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.with(|database| {
            let read = database.begin_read()?;
            let prefix = subject.prefix();
            let mut drawn = Vec::new();
            if let Some(first) = whose.first() {
                let keys = read.open_table(REPORTERS_KEYS)?;
                let own = draw(&keys, &subject.reporter_prefix(first), count)?;
                let own = own.iter().map(|key| key_of_reporter_key(prefix.len(), key));
                drawn.extend(own);
            }
            if !matches!(whose, Whose::Only(_)) && drawn.len() < count {
                let all = draw(&read.open_table(MEASUREMENTS)?, &prefix, count)?;
                let first: HashSet<Vec<u8>> = drawn.iter().cloned().collect();
                drawn.extend(all.into_iter().filter(|key| !first.contains(key)));
                drawn.truncate(count);
            }
            Ok(drawn)
        })
    }

    /// Reads the measurements of the first of some keys, as many as fit a page. Returns also the number of keys that were read;
    /// those of measurements that were deleted meanwhile are left out.
    pub(in crate::store) fn read(
        &self,
        keys: &[Vec<u8>],
    ) -> Result<(Vec<Measurement>, usize), StoreError> {
        self.with(|database| {
            let table = database.begin_read()?.open_table(MEASUREMENTS)?;
            let mut measurements = Vec::new();
            let mut bytes = 0;
            for (place, key) in keys.iter().enumerate() {
                if bytes >= MAX_PAGE_BYTES {
                    return Ok((measurements, place));
                }
                if let Some(record) = table.get(key.as_slice())? {
                    let read = Measurement::read(key, record.value()).ok_or_else(unreadable)?;
                    bytes += key.len() + record.value().len();
                    measurements.push(read.1);
                }
            }
            Ok((measurements, keys.len()))
        })
    }

    /// Reads at most `count` of the chosen measurements, from the first one after the key `after`.
    pub(in crate::store) fn page(
        &self,
        chosen: &Chosen,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Page, StoreError> {
        self.with(|database| {
            let table = database.begin_read()?.open_table(MEASUREMENTS)?;
            let prefix = chosen.prefix();
            let prefix = prefix.as_slice();
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
                if chosen.has_reporter_of(key) {
                    let measurement = Measurement::read(key, record).ok_or_else(unreadable)?;
                    page.measurements.push(measurement);
                    bytes += key.len() + record.len();
                }
            }
            Ok(page)
        })
    }

    /// Returns the graph of a subject, if it is kept.
    pub(in crate::store) fn graph(
        &self,
        subject: &Subject,
    ) -> Result<Option<KeptGraph>, StoreError> {
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
    pub(in crate::store) fn has_graph(&self, subject: &Subject) -> Result<bool, StoreError> {
        self.with(|database| {
            let subjects = database.begin_read()?.open_table(SUBJECTS)?;
            Ok(subjects.get(subject.prefix().as_slice())?.is_some())
        })
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, from the first one after `after`.
    pub(in crate::store) fn subjects(
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
    pub(in crate::store) fn alike(
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

/// Draws keys with a prefix, which the digest of a configuration follows, turn by turn.
fn draw<V: redb::Value + 'static>(
    table: &ReadOnlyTable<&'static [u8], V>,
    prefix: &[u8],
    count: usize,
) -> Result<Vec<Vec<u8>>, redb::Error> {
    let next = |start: Bound<&[u8]>, prefix: &[u8]| {
        let mut range = table.range::<&[u8]>((start, Bound::Unbounded))?;
        let key = range
            .next()
            .transpose()?
            .map(|(key, _)| key.value().to_vec());
        Ok::<_, redb::Error>(key.filter(|key| key.starts_with(prefix)))
    };
    let of_config = prefix.len() + DIGEST_BYTES;
    let mut drawn: Vec<Vec<u8>> = Vec::new();
    let mut start = Some(prefix.to_vec());
    // Configurations are looked up one by one, so that the measurements between them are not read.
    while let Some(from) = start.filter(|_| drawn.len() < count) {
        let Some(key) = next(Bound::Included(&from), prefix)? else {
            break;
        };
        start = key.get(..of_config).and_then(end_of_prefix);
        drawn.push(key);
    }
    let mut turn = 0..drawn.len();
    while !turn.is_empty() {
        let begin = drawn.len();
        for place in turn {
            if drawn.len() == count {
                return Ok(drawn);
            }
            let key = &drawn[place];
            drawn.extend(next(Bound::Excluded(key), &key[..of_config])?);
        }
        turn = begin..drawn.len();
    }
    Ok(drawn)
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

fn begin(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    drop(Tables::open(&write)?);
    write.open_table(FACTS)?.insert(FORMAT, CURRENT_FORMAT)?;
    Ok(write.commit()?)
}
