use std::{
    io::{Cursor, Read as _, Take},
    path::Path,
};

use npyz::npz::file_name_from_array_name;
use zip::{ZipArchive, read::ZipFile, result::ZipError};

use super::{element::Element, npy::Npy};
use crate::{ConfigurationError, FileError};

/// The name of an axis, and its size unless any is allowed.
pub(super) type Axis<'a> = (&'a str, Option<usize>);

type Entry<'a> = Take<ZipFile<'a, Cursor<Vec<u8>>>>;

/// A reader of the arrays of an npz file.
pub(super) struct Arrays {
    path: String,
    archive: ZipArchive<Cursor<Vec<u8>>>,
}

impl Arrays {
    /// Returns a reader of the bytes of a file. Errors name its `path`. The arrays of the file may have at most `limit`
    /// bytes when they are decompressed, by what the file claims; no more than that is decompressed.
    pub(super) fn of(path: &Path, bytes: Vec<u8>, limit: u64) -> Result<Self, FileError> {
        let path = path.display().to_string();
        let opened = ZipArchive::new(Cursor::new(bytes)).and_then(|mut archive| {
            let found = claimed_bytes(&mut archive)?;
            Ok((archive, found))
        });
        match opened {
            Ok((_, found)) if found > limit => Err(FileError::TooLarge { path, found, limit }),
            Ok((archive, _)) => Ok(Self { path, archive }),
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
        let names = [file_name_from_array_name(array), array.to_owned()];
        names
            .into_iter()
            .find(|name| self.archive.index_for_name(name).is_some())
    }

    pub(super) fn error(&self, array: &str, detail: &impl ToString) -> FileError {
        FileError::Array {
            path: self.path.clone(),
            array: array.to_owned(),
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

    /// Reads at most `limit` integers of any type. `TGraph` stores them as f64.
    pub(super) fn integers(&mut self, name: &str, limit: usize) -> Result<Vec<i64>, FileError> {
        self.visit(name, |array| {
            collected(array.at_most(limit)?, Element::integer)
        })
    }

    /// Reads at most `limit` bytes.
    pub(super) fn bytes(&mut self, name: &str, limit: usize) -> Result<Vec<u8>, FileError> {
        let byte = |element: Element, bytes| {
            let value = element.integer(bytes)?;
            u8::try_from(value).map_err(|_| format!("value {value} is not a byte"))
        };
        self.visit(name, |array| collected(array.at_most(limit)?, byte))
    }

    /// Checks the shape of an array. `None` stands for any size; errors name the axes.
    pub(super) fn check_shape(
        &mut self,
        name: &str,
        expected: &[Axis<'_>],
    ) -> Result<(), FileError> {
        self.visit(name, |array| {
            let shape = array.shape();
            if fits(shape, expected) {
                return Ok(());
            }
            Err(format!(
                "has shape {shape:?}, expected [{}]",
                names_and_sizes(expected)
            ))
        })
    }

    /// Returns the shape of an array.
    pub(super) fn shape(&mut self, name: &str) -> Result<Vec<usize>, FileError> {
        self.visit(name, |array| Ok(array.shape().to_vec()))
    }

    /// Reads at most `limit` numbers as f32.
    pub(super) fn floats(&mut self, name: &str, limit: usize) -> Result<Vec<f32>, FileError> {
        self.visit(name, |array| collected(array.at_most(limit)?, float))
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
            array.visit(float, |value| {
                row.push(value);
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

/// Returns the bytes that the files of an archive claim to have when they are decompressed.
fn claimed_bytes(archive: &mut ZipArchive<Cursor<Vec<u8>>>) -> Result<u64, ZipError> {
    // A raw entry has its size from the directory of the archive, so nothing is decompressed for
    // it.
    (0..archive.len())
        .map(|entry| Ok(archive.by_index_raw(entry)?.size()))
        .sum()
}

fn fits(shape: &[usize], expected: &[Axis<'_>]) -> bool {
    let fits = |(size, (_, expected)): (&usize, &Axis<'_>)| {
        expected.is_none_or(|expected| *size == expected)
    };
    shape.len() == expected.len() && shape.iter().zip(expected).all(fits)
}

/// Returns the sizes of axes, and the names of those that may have any.
fn names_and_sizes(axes: &[Axis<'_>]) -> String {
    let shown =
        |(name, size): &Axis<'_>| size.map_or_else(|| (*name).to_owned(), |size| size.to_string());
    axes.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Collects the numbers of an array. Memory grows with what is read, and not with what the header claims.
fn collected<T: Copy>(
    array: Npy<Entry<'_>>,
    convert: impl Fn(Element, [u8; 8]) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut numbers = Vec::new();
    array.visit(convert, |number| {
        numbers.push(number);
        Ok(())
    })?;
    Ok(numbers)
}

/// Returns a number as f32, which arrays of graphs check for being finite.
#[expect(clippy::unnecessary_wraps, reason = "as other conversions")]
fn float(element: Element, bytes: [u8; 8]) -> Result<f32, String> {
    Ok(element.float(bytes))
}
