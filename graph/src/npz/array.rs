use std::{
    io::{self, Cursor, Read as _, Take},
    path::Path,
};

use npyz::npz::file_name_from_array_name;
use zip::{ZipArchive, read::ZipFile, result::ZipError};

use super::npy::Npy;
use crate::{ConfigurationError, FileError};

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
            let sizes = (0..archive.len()).map(|entry| Ok(archive.by_index_raw(entry)?.size()));
            let found = sizes.sum::<Result<u64, ZipError>>()?;
            Ok((archive, found))
        });
        match opened {
            Ok((_, found)) if found > limit => Err(FileError::TooLarge { path, found, limit }),
            Ok((archive, _)) => Ok(Self { path, archive }),
            Err(error) => Err(FileError::Io { path, source: error.into() }),
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(&file_name_from_array_name(name)).is_some()
    }

    pub(super) fn error(&self, array: &str, detail: &impl ToString) -> FileError {
        FileError::Array { path: self.path.clone(), array: array.to_owned(), detail: detail.to_string() }
    }

    /// Reads at most `limit` integers of every type that `TpuGraphs` and its users store. `TGraph` stores them as f64.
    pub(super) fn integers(&mut self, name: &str, limit: usize) -> Result<Vec<i64>, FileError> {
        self.visit(name, |array| match array.at_most(limit)?.kind() {
            "<i8" => collected(array.numbers(i64::from_le_bytes)),
            "<i4" => collected(array.numbers(|bytes| i32::from_le_bytes(bytes).into())),
            "|u1" => collected(array.numbers(|[byte]| byte.into())),
            "<f8" => collected(array.numbers(f64::from_le_bytes).map(|value| whole(value?))),
            kind => Err(format!("has type `{kind}`, expected <i8, <i4, |u1 or <f8")),
        })
    }

    /// Reads at most `limit` bytes.
    pub(super) fn bytes(&mut self, name: &str, limit: usize) -> Result<Vec<u8>, FileError> {
        self.visit(name, |array| match array.at_most(limit)?.kind() {
            "|u1" => collected(array.numbers(|[byte]| byte)),
            kind => Err(format!("has type `{kind}`, expected |u1")),
        })
    }

    /// Checks the shape of an array. `None` stands for any size.
    pub(super) fn check_shape(&mut self, name: &str, expected: &[Option<usize>]) -> Result<(), FileError> {
        self.visit(name, |array| {
            let shape = array.shape();
            let fits = |(size, expected): (&usize, &Option<usize>)| {
                expected.is_none_or(|expected| *size == expected)
            };
            if shape.len() == expected.len() && shape.iter().zip(expected).all(fits) {
                return Ok(());
            }
            let expected: Vec<String> =
                expected.iter().map(|size| size.map_or("_".to_owned(), |size| size.to_string())).collect();
            Err(format!("has shape {shape:?}, expected [{}]", expected.join(", ")))
        })
    }

    /// Returns the shape of a matrix.
    pub(super) fn matrix(&mut self, name: &str) -> Result<[usize; 2], FileError> {
        self.check_shape(name, &[None, None])?;
        self.visit(name, |array| {
            <[usize; 2]>::try_from(array.shape()).map_err(|_| format!("has shape {:?}", array.shape()))
        })
    }

    /// Reads at most `limit` f32 numbers.
    pub(super) fn floats(&mut self, name: &str, limit: usize) -> Result<Vec<f32>, FileError> {
        self.visit(name, |array| match array.at_most(limit)?.kind() {
            "<f4" => collected(array.numbers(f32::from_le_bytes)),
            kind => Err(format!("has type `{kind}`, expected <f4")),
        })
    }

    /// Reads f32 numbers, or i8 as in compact copies of the official files, or the bytes of bits, row by row, so that a large array is never
    /// in memory as a whole. `row_length` returns the length of a row, or `None` if the shape is wrong.
    pub(super) fn float_rows(
        &mut self,
        name: &str,
        row_length: impl Fn(&[usize]) -> Option<usize>,
        take: impl FnMut(&[f32]) -> Result<(), ConfigurationError>,
    ) -> Result<(), FileError> {
        let refused = self.visit(name, |array| {
            let length =
                row_length(array.shape()).ok_or_else(|| format!("unexpected shape {:?}", array.shape()))?;
            match array.kind() {
                "<f4" => in_rows(array.numbers(f32::from_le_bytes), length, take),
                "|i1" => in_rows(array.numbers(|byte| i8::from_le_bytes(byte).into()), length, take),
                "|u1" => in_rows(array.numbers(|byte| u8::from_le_bytes(byte).into()), length, take),
                kind => Err(format!("has type `{kind}`, expected <f4, |i1 or |u1")),
            }
        })?;
        refused.map_err(|source| FileError::Configuration { path: self.path.clone(), module: 0, source })
    }

    fn visit<T>(
        &mut self,
        name: &str,
        visit: impl FnOnce(Npy<Entry<'_>>) -> Result<T, String>,
    ) -> Result<T, FileError> {
        let visited = match self.archive.by_name(&file_name_from_array_name(name)) {
            Err(ZipError::FileNotFound) => Err("missing".to_owned()),
            Err(error) => Err(error.to_string()),
            Ok(entry) => {
                let claimed = entry.size();
                Npy::new(entry.take(claimed)).and_then(visit)
            }
        };
        visited.map_err(|detail| self.error(name, &detail))
    }
}

/// Collects the numbers of an array.
fn collected<T>(numbers: impl Iterator<Item = io::Result<T>>) -> Result<Vec<T>, String> {
    let numbers: io::Result<Vec<T>> = numbers.collect();
    numbers.map_err(|error| error.to_string())
}

/// Calls `take` with each row of `values`. The inner result is the first error of `take`.
fn in_rows(
    values: impl Iterator<Item = io::Result<f32>>,
    length: usize,
    mut take: impl FnMut(&[f32]) -> Result<(), ConfigurationError>,
) -> Result<Result<(), ConfigurationError>, String> {
    let mut row = Vec::with_capacity(length);
    for value in values {
        row.push(value.map_err(|error| error.to_string())?);
        if row.len() == length {
            if let Err(refused) = take(&row) {
                return Ok(Err(refused));
            }
            row.clear();
        }
    }
    Ok(Ok(()))
}

/// Converts a whole number that is stored as f64.
fn whole(value: f64) -> io::Result<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "checked to be the same"
    )]
    let (integer, same) = (value as i64, (value as i64) as f64 == value);
    if same { Ok(integer) } else { Err(io::Error::other(format!("{value} is not a whole number"))) }
}
