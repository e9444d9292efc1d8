use std::{
    fs::File,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use parking_lot::RwLock;
use redb::{
    Builder, Database, ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _,
    TableError,
};

use super::{
    tables::{BYTES, FACTS, MEASUREMENTS, Tables},
    view::StoredView,
};
use crate::store::{OpenStoreError, StoreError, Unusable};

/// Name of the format in [`FACTS`].
const FORMAT: &str = "format";

/// The format that this version writes and reads.
const CURRENT_FORMAT: u64 = 5;

/// Memory for pages of the file.
const CACHE_BYTES: usize = 16 << 20;

/// The file of measurements.
pub(crate) struct StoreFile {
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

impl StoreFile {
    /// Opens a file, and reads all of it to check it. Creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, OpenStoreError> {
        let opened = unless_panicking(open, path).map_err(|reason| OpenStoreError {
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
            let database = unless_panicking(open, &self.path).map_err(|reason| failed(&reason))?;
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
            let database = unless_panicking(view, &self.path).map_err(|reason| failed(&reason))?;
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

    /// Returns the number of measurements, and the bytes of all keys, records and graphs.
    pub(super) fn totals(&self) -> Result<(u64, u64), StoreError> {
        self.read(|read| {
            let bytes = read.open_table(FACTS)?.get(BYTES)?;
            let measurements = read.open_table(MEASUREMENTS)?.len()?;
            Ok((measurements, bytes.map_or(0, |bytes| bytes.value())))
        })
    }
}

fn failed(reason: &dyn ToString) -> StoreError {
    StoreError::Failed(reason.to_string())
}

/// Opens a file. redb panics on some damaged ones.
fn unless_panicking(
    open: fn(&Path) -> Result<Database, Unusable>,
    path: &Path,
) -> Result<Database, Unusable> {
    let opened = panic::catch_unwind(|| open(path));
    opened.unwrap_or_else(|_| Err(Unusable::Damaged("a page is unreadable".to_owned())))
}

/// Opens a file to be read, and leaves it as it is.
fn view(path: &Path) -> Result<Database, Unusable> {
    let view = StoredView::open(path).map_err(Unusable::Io)?;
    Ok(Builder::new()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(view)?)
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
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))
            .and_then(|folder| folder.sync_all())
            .map_err(Unusable::Io)?;
    }
    Ok(database)
}

/// Checks the format of a file, or sets that of an empty one.
fn check_format(database: &Database) -> Result<(), Unusable> {
    let read = database.begin_read().map_err(redb::Error::from)?;
    match read.open_table(FACTS) {
        Ok(facts) => match facts.get(FORMAT)?.map(|format| format.value()) {
            Some(CURRENT_FORMAT) => Ok(()),
            Some(found) => Err(Unusable::OtherFormat {
                found,
                known: CURRENT_FORMAT,
            }),
            None => Err(Unusable::Damaged("it has no format".to_owned())),
        },
        // A file without any table is new. One with other tables is of another program, and is left
        // alone.
        Err(TableError::TableDoesNotExist(_)) if read.list_tables()?.next().is_none() => {
            Ok(begin(database)?)
        }
        Err(error) => Err(redb::Error::from(error).into()),
    }
}

fn begin(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    drop(Tables::open(&write)?);
    write.open_table(FACTS)?.insert(FORMAT, CURRENT_FORMAT)?;
    Ok(write.commit()?)
}
