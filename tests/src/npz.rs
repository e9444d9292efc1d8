//! Reads and writes npz files without the reader and the writer that are under test.

use std::{fs::File, io::Cursor, path::Path};

use npyz::{
    AutoSerialize, Deserialize, NpyFile, Order, WriteOptions, WriterBuilder as _,
    npz::file_name_from_array_name,
};
use zip::{ZipArchive, ZipWriter, write::SimpleFileOptions};

/// Arrays of an npz file.
pub struct Arrays {
    archive: ZipArchive<File>,
}

/// An npz file that is written.
pub(crate) struct ArrayWriter(ZipWriter<Cursor<Vec<u8>>>);

impl Arrays {
    /// Opens a file.
    pub fn open(path: &Path) -> Self {
        let archive = File::open(path)
            .map_err(Into::into)
            .and_then(ZipArchive::new);
        Self {
            archive: archive.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        }
    }

    /// Returns the values of an array in C order, whichever the file has.
    pub fn values<T: Clone + Deserialize>(&mut self, name: &str) -> Vec<T> {
        let entry = self.archive.by_name(&format!("{name}.npy"));
        let file = entry.map_err(Into::into).and_then(NpyFile::new);
        let values = file.and_then(|file| {
            let shape = file.shape().to_vec();
            let order = file.order();
            let values = file.into_vec()?;
            Ok(match (order, &shape[..]) {
                (Order::Fortran, &[rows, columns]) => transposed(&values, rows, columns),
                _ => values,
            })
        });
        values.unwrap_or_else(|error| panic!("array {name}: {error}"))
    }
}

impl ArrayWriter {
    pub(crate) fn new() -> Self {
        Self(ZipWriter::new(Cursor::new(Vec::new())))
    }

    /// Adds an array.
    pub(crate) fn add<T: AutoSerialize>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = T>,
    ) {
        let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        let options = SimpleFileOptions::default().last_modified_time(zip::DateTime::default());
        let started = self.0.start_file(file_name_from_array_name(name), options);
        started.expect("an array can be started");
        let options = WriteOptions::new().default_dtype().shape(&shape);
        let array = options.writer(&mut self.0).begin_nd();
        let mut array = array.expect("an array can be started");
        array.extend(values).expect("an array can be written");
        array.finish().expect("an array can be written");
    }

    /// Returns the file.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.finish().expect("a file can be written").into_inner()
    }
}

/// Returns an array that is stored by columns by rows.
fn transposed<T: Clone>(values: &[T], rows: u64, columns: u64) -> Vec<T> {
    let size = |size| usize::try_from(size).expect("a size in memory");
    let (rows, columns) = (size(rows), size(columns));
    let of_row = |row: usize| (0..columns).map(move |column| values[column * rows + row].clone());
    (0..rows).flat_map(of_row).collect()
}
