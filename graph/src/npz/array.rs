use std::{
    io::{Cursor, Read as _, Take},
    path::Path,
};

use npyz::npz::file_name_from_array_name;
use zip::{ZipArchive, read::ZipFile, result::ZipError};

use super::npy::{Npy, Number};
use crate::{ConfigurationError, FileError};

/// The name of an axis, and its size unless any is allowed.
type Axis<'a> = (&'a str, Option<usize>);

type Entry<'a> = Take<ZipFile<'a, Cursor<Vec<u8>>>>;

/// A reader of the arrays of an npz file.
pub(super) struct Arrays {
    path: String,
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// What precedes the names of arrays in the archive.
    pub(super) prefix: String,
}

impl Arrays {
    /// Returns a reader of the bytes of a file. Errors name its `path`. The arrays of the file may have at most `limit`
    /// bytes when they are decompressed, by what the file claims; no more than that is decompressed.
    pub(super) fn of(path: &Path, bytes: Vec<u8>, limit: u64) -> Result<Self, FileError> {
        let path = path.display().to_string();
        let opened = ZipArchive::new(Cursor::new(bytes)).and_then(|mut archive| {
            // A raw entry has its size from the directory of the archive, so nothing is
            // decompressed for it.
            let sizes = (0..archive.len()).map(|entry| Ok(archive.by_index_raw(entry)?.size()));
            let found: u64 = sizes.sum::<Result<_, ZipError>>()?;
            Ok((archive, found))
        });
        match opened {
            Ok((_, found)) if found > limit => Err(FileError::TooLarge { path, found, limit }),
            Ok((archive, _)) => Ok(Self {
                path,
                archive,
                prefix: String::new(),
            }),
            Err(error) => Err(FileError::Io {
                path,
                source: error.into(),
            }),
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.file_name(name).is_some()
    }

    /// Returns the names of the files in the archive.
    pub(super) fn files(&self) -> Vec<String> {
        self.archive.file_names().map(str::to_owned).collect()
    }

    /// Returns the file of an array: with `.npy`, as numpy names it, or without, which numpy reads too.
    fn file_name(&self, array: &str) -> Option<String> {
        let array = format!("{}{array}", self.prefix);
        let names = [file_name_from_array_name(&array), array];
        names
            .into_iter()
            .find(|name| self.archive.index_for_name(name).is_some())
    }

    pub(super) fn error(&self, array: &str, detail: &impl ToString) -> FileError {
        FileError::Array {
            path: self.path.clone(),
            array: format!("{}{array}", self.prefix),
            detail: detail.to_string(),
        }
    }

    pub(super) fn configuration_error(&self, source: ConfigurationError) -> FileError {
        FileError::Configuration {
            path: self.path.clone(),
            module: 0,
            source,
        }
    }

    /// Reads at most `limit` integers of any type that fit `T`. `TGraph` stores them as f64.
    pub(super) fn integers<T: TryFrom<i64>>(
        &mut self,
        name: &str,
        limit: usize,
    ) -> Result<Vec<T>, FileError> {
        self.collect(name, limit, |number| {
            let value = number.integer()?;
            T::try_from(value).map_err(|_| format!("value {value} is out of range"))
        })
    }

    /// Reads at most `limit` numbers as f32.
    pub(super) fn floats(&mut self, name: &str, limit: usize) -> Result<Vec<f32>, FileError> {
        self.collect(name, limit, |number| Ok(number.float()))
    }

    /// Collects at most `limit` numbers. Memory grows with what is read, and not with what the header claims.
    fn collect<T>(
        &mut self,
        name: &str,
        limit: usize,
        convert: impl Fn(Number) -> Result<T, String>,
    ) -> Result<Vec<T>, FileError> {
        self.visit(name, |array| {
            let mut numbers = Vec::new();
            array.at_most(limit)?.visit(|number| {
                numbers.push(convert(number)?);
                Ok(())
            })?;
            Ok(numbers)
        })
    }

    /// Checks the shape of an array. `None` stands for any size; errors name the axes.
    pub(super) fn check_shape(
        &mut self,
        name: &str,
        expected: &[Axis<'_>],
    ) -> Result<(), FileError> {
        self.visit(name, |array| {
            let shape = array.shape();
            let fits = shape.len() == expected.len()
                && shape
                    .iter()
                    .zip(expected)
                    .all(|(size, (_, expected))| expected.is_none_or(|expected| *size == expected));
            if fits {
                return Ok(());
            }
            let shown = |(name, size): &Axis<'_>| {
                size.map_or_else(|| (*name).to_owned(), |size| size.to_string())
            };
            let axes: Vec<String> = expected.iter().map(shown).collect();
            Err(format!(
                "has shape {shape:?}, expected [{}]",
                axes.join(", ")
            ))
        })
    }

    /// Returns the shape of an array.
    pub(super) fn shape(&mut self, name: &str) -> Result<Vec<usize>, FileError> {
        self.visit(name, |array| Ok(array.shape().to_vec()))
    }

    /// Reads numbers as f32, row by row, so that a large array in row-major order is never in memory as a whole.
    /// `row_length` returns the length of a row, or what is wrong with the shape.
    pub(super) fn float_rows(
        &mut self,
        name: &str,
        row_length: impl Fn(&[usize]) -> Result<usize, String>,
        mut take: impl FnMut(&[f32]) -> Result<(), ConfigurationError>,
    ) -> Result<(), FileError> {
        // What `take` refuses has a type that the text of `visit` would lose, so it is kept beside
        // the text.
        let mut refused = None;
        let visited = self.visit(name, |array| {
            let length = row_length(array.shape())?;
            let mut row = Vec::with_capacity(length);
            array.visit(|number| {
                row.push(number.float());
                if row.len() == length {
                    take(&row).map_err(|error| refused.insert(error).to_string())?;
                    row.clear();
                }
                Ok(())
            })
        });
        match refused {
            Some(source) => Err(self.configuration_error(source)),
            None => visited,
        }
    }

    fn visit<T>(
        &mut self,
        name: &str,
        visit: impl FnOnce(Npy<Entry<'_>>) -> Result<T, String>,
    ) -> Result<T, FileError> {
        let file = self.file_name(name).unwrap_or_default();
        let visited = match self.archive.by_name(&file) {
            Err(ZipError::FileNotFound) => Err("missing".to_owned()),
            Err(error) => Err(error.to_string()),
            Ok(entry) => {
                // An archive may decompress to more than it claims, and only the claim was compared
                // with the limit.
                let claimed = entry.size();
                Npy::new(entry.take(claimed)).and_then(visit)
            }
        };
        visited.map_err(|detail| self.error(name, &detail))
    }
}
