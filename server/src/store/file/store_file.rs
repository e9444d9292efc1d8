use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use parking_lot::{Mutex, MutexGuard, RwLock};
use redb::{
    Builder, Database, ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _,
    StorageBackend, TableError,
};
use tracing::subscriber::{NoSubscriber, with_default};

use super::tables::{self, BYTES, DECISIONS, FACTS, MEASUREMENTS, Tables};
use crate::store::{OpenStoreError, StoreError, StoreFault};

/// Name of the format in [`FACTS`].
const FORMAT: &str = "format";

/// The format that this version writes and reads.
const CURRENT_FORMAT: u64 = 7;

/// A file is compacted once it has this many times the bytes of its keys, records and graphs. It grows to two to three times.
const MAX_TIMES_HELD: u64 = 4;

/// A shorter file is never compacted.
const MIN_COMPACTED: u64 = 16 << 20;

/// Memory for pages of the file.
const CACHE_BYTES: usize = 16 << 20;

/// The file of measurements.
pub(crate) struct StoreFile {
    path: PathBuf,
    /// `None` after it failed or was closed.
    database: RwLock<Option<OpenFile>>,
}

/// The open file.
struct OpenFile {
    database: Database,
    /// Whether it can only be read, because it could not be written.
    is_view: bool,
}

/// How much the file holds.
pub(super) struct FileTotals {
    pub(super) measurements: u64,
    pub(super) decisions: u64,
    /// Bytes of all keys, records and graphs.
    pub(super) bytes: u64,
}

impl StoreFile {
    /// Opens a file, and reads all of it to check it. Creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, OpenStoreError> {
        let database = open(path).map_err(|reason| OpenStoreError {
            at: path.display().to_string(),
            reason,
        })?;
        Ok(Self {
            // A copy takes the place of the file itself, and not of a link to it.
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            database: RwLock::new(Some(OpenFile {
                database,
                is_view: false,
            })),
        })
    }

    /// Opens the file again if it cannot be written, after a failure.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let mut opened = self.database.write();
        if opened.as_ref().is_none_or(|opened| opened.is_view) {
            // It is locked for as long as it is open.
            *opened = None;
            let database = open(&self.path).map_err(|reason| failed(&reason))?;
            *opened = Some(OpenFile {
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
            let database = view(&self.path).map_err(|reason| failed(&reason))?;
            *opened = Some(OpenFile {
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

    /// Reads the open file in one transaction.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.with(|database| read(&database.begin_read()?))
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

    /// Replaces the file with a copy if most of it is free. A copy has only the pages that it needs. Others read the file
    /// meanwhile; only the one who writes may call this. redb's own `compact` takes five times as long, and no one could read.
    pub(super) fn compact(&self) -> Result<(), StoreError> {
        let failed = |error: io::Error| failed(&error);
        let length = || Ok(fs::metadata(&self.path)?.len());
        let before = length().map_err(failed)?;
        let held = self.totals()?.bytes;
        if before < MIN_COMPACTED || before / MAX_TIMES_HELD < held {
            return Ok(());
        }
        self.reopen()?;
        let mut part = self.path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let database = self.with(|database| self.copy(&database.begin_read()?, &part))?;
        // Nobody reads from here on, so the old file has no reader when it is closed. The copy is locked while it is open, so no
        // other process opens it in between.
        let mut opened = self.database.write();
        rename(&part, &self.path).map_err(failed)?;
        *opened = Some(OpenFile {
            database,
            is_view: false,
        });
        drop(opened);
        let after = length().map_err(failed)?;
        tracing::info!(path = %self.path.display(), before, after, "the file of measurements was compacted");
        Ok(())
    }

    /// Writes what a transaction reads to a new file, and returns that once it is on disk.
    fn copy(&self, read: &ReadTransaction, path: &Path) -> Result<Database, redb::Error> {
        // A server that was killed may have left one.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(redb::Error::Io(error));
            }
            _ => {}
        }
        let write = || {
            let copied = builder().create(path)?;
            // Nobody may read the copy who may not read the file.
            let permissions = fs::metadata(&self.path).map(|file| file.permissions());
            permissions
                .and_then(|permissions| fs::set_permissions(path, permissions))
                .map_err(redb::Error::Io)?;
            let write = copied.begin_write()?;
            tables::copy(read, &write)?;
            write.commit()?;
            Ok(copied)
        };
        write().inspect_err(|_| {
            // The disk may be full of it.
            let _ = fs::remove_file(path);
        })
    }

    pub(super) fn totals(&self) -> Result<FileTotals, StoreError> {
        self.read(|read| {
            let bytes = read.open_table(FACTS)?.get(BYTES)?;
            Ok(FileTotals {
                measurements: read.open_table(MEASUREMENTS)?.len()?,
                decisions: read.open_table(DECISIONS)?.len()?,
                bytes: bytes.map_or(0, |bytes| bytes.value()),
            })
        })
    }
}

/// Gives a file another name, which a power cut does not lose.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn failed(reason: &dyn ToString) -> StoreError {
    StoreError::Failed(reason.to_string())
}

/// Opens a file. redb panics on many damaged ones. That is an answer like its errors, and no fault of the server, so it is not
/// logged as one.
fn unless_panicking<T>(open: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, StoreFault> {
    let open = AssertUnwindSafe(open);
    let opened = with_default(NoSubscriber::default(), || panic::catch_unwind(open));
    let damaged = || StoreFault::Damaged("a page is unreadable".to_owned());
    Ok(opened.map_err(|_| damaged())??)
}

/// Opens a file to be read, and leaves it as it is.
fn view(path: &Path) -> Result<Database, StoreFault> {
    let view = StoredView::open(path).map_err(StoreFault::Io)?;
    unless_panicking(|| Ok(builder().create_with_backend(view)?))
}

fn open(path: &Path) -> Result<Database, StoreFault> {
    let is_new = !path.exists();
    let (database, was_closed, format) = unless_panicking(|| {
        let mut database = builder().create(path)?;
        // Reads every page, so that damage shows at the start rather than in a call.
        let was_closed = database.check_integrity()?;
        let format = format(&database)?;
        Ok((database, was_closed, format))
    })?;
    if !was_closed {
        tracing::warn!(path = %path.display(), "the file of measurements was not closed properly, and was repaired");
    }
    match format {
        Some(CURRENT_FORMAT) => {}
        Some(found) => {
            return Err(StoreFault::OtherFormat {
                found,
                known: CURRENT_FORMAT,
            });
        }
        None => return Err(StoreFault::Damaged("it has no format".to_owned())),
    }
    if is_new {
        // Otherwise a power cut could lose the name of the file.
        sync_folder_of(path).map_err(StoreFault::Io)?;
    }
    Ok(database)
}

/// Returns the format of a file, which is set if the file is empty.
fn format(database: &Database) -> Result<Option<u64>, redb::Error> {
    let read = database.begin_read()?;
    match read.open_table(FACTS) {
        Ok(facts) => Ok(facts.get(FORMAT)?.map(|format| format.value())),
        // A file without any table is new. One with other tables is of another program, and is left
        // alone.
        Err(TableError::TableDoesNotExist(_)) if read.list_tables()?.next().is_none() => {
            set_format(database)
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates the tables.
fn set_format(database: &Database) -> Result<Option<u64>, redb::Error> {
    let write = database.begin_write()?;
    drop(Tables::open(&write)?);
    write.open_table(FACTS)?.insert(FORMAT, CURRENT_FORMAT)?;
    write.commit()?;
    Ok(Some(CURRENT_FORMAT))
}

/// A view of the file that writes nothing to it. What redb writes while it repairs the file stays in memory, so the file can be
/// read while the disk is full. Nobody may write the file meanwhile.
#[derive(Debug)]
struct StoredView {
    file: File,
    changed: Mutex<FileDifference>,
}

/// What differs from the file.
#[derive(Debug)]
struct FileDifference {
    length: u64,
    /// The contents of changed blocks by number.
    blocks: BTreeMap<u64, Box<Block>>,
}

type Block = [u8; BLOCK_BYTES];

const BLOCK_BYTES: usize = 4_096;

impl StoredView {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            file,
            changed: Mutex::new(FileDifference {
                length,
                blocks: BTreeMap::new(),
            }),
        })
    }

    fn changed(&self) -> MutexGuard<'_, FileDifference> {
        self.changed.lock()
    }

    /// Reads a block of the file. What lies behind its end is zero.
    fn block(&self, number: u64) -> io::Result<Box<Block>> {
        let mut block = Box::new([0; BLOCK_BYTES]);
        let start = number * BLOCK_BYTES as u64;
        let mut read = 0;
        // One read may return fewer bytes than were asked for.
        while read < BLOCK_BYTES {
            match self.file.read_at(&mut block[read..], start + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(block)
    }
}

/// Splits a range of bytes at the ends of blocks. Returns the block of each piece, its offset there, and its length.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let place = offset + done as u64;
        let within = usize::try_from(place % BLOCK_BYTES as u64).ok()?;
        let length = (BLOCK_BYTES - within).min(bytes - done);
        done += length;
        (length > 0).then_some((place / BLOCK_BYTES as u64, within, length))
    })
}

impl StorageBackend for StoredView {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed().length)
    }

    fn read(&self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        let changed = self.changed();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > changed.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, within, length) in pieces(offset, out.len()) {
            let (piece, rest) = out.split_at_mut(length);
            // A block that was written has all bytes of the block, so only one of the two is read.
            match changed.blocks.get(&number) {
                Some(block) => piece.copy_from_slice(&block[within..][..length]),
                None => piece.copy_from_slice(&self.block(number)?[within..][..length]),
            }
            out = rest;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.changed().length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        // Nothing is to survive the view.
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        let mut changed = self.changed();
        for (number, within, length) in pieces(offset, data.len()) {
            let (piece, rest) = data.split_at(length);
            // The first write to a block copies the rest of it from the file.
            let mut block = match changed.blocks.remove(&number) {
                Some(block) => block,
                None => self.block(number)?,
            };
            block[within..][..length].copy_from_slice(piece);
            changed.blocks.insert(number, block);
            data = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_shows_what_was_written_to_it_and_leaves_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content: Vec<u8> = (0..10_000_u32)
            .map(|number| u8::try_from(number % 251).unwrap())
            .collect();
        fs::write(&path, &content).unwrap();
        let view = StoredView::open(&path).unwrap();
        view.set_len(20_000).unwrap();
        view.write(4_000, &[7; 5_000]).unwrap();
        view.write(19_999, &[9]).unwrap();
        let mut expected = content.clone();
        expected[4_000..9_000].fill(7);
        expected.resize(20_000, 0);
        expected[19_999] = 9;
        let mut read = vec![0; 20_000];
        view.read(0, &mut read).unwrap();
        assert_eq!(read, expected);
        assert!(view.read(19_999, &mut [0; 2]).is_err(), "behind its end");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}
