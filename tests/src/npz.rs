//! Reads reference arrays without the reader that is under test.
#![expect(
    clippy::panic,
    reason = "a reference that cannot be read fails the test"
)]

use std::{fs::File, path::Path};

use npyz::{Deserialize, NpyFile, Order};
use zip::ZipArchive;

/// Arrays of an npz file. Every method panics if the file is not what the test expects.
pub struct Arrays {
    archive: ZipArchive<File>,
}

impl Arrays {
    /// Opens a file.
    ///
    /// # Panics
    /// If the file is missing or is not an npz file.
    pub fn open(path: &Path) -> Self {
        let archive = File::open(path)
            .map_err(Into::into)
            .and_then(ZipArchive::new);
        Self {
            archive: archive.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        }
    }

    /// Returns the values of an array in C order, whichever the file has.
    ///
    /// # Panics
    /// If there is no array of this name and type.
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

/// Returns an array that is stored by columns by rows.
fn transposed<T: Clone>(values: &[T], rows: u64, columns: u64) -> Vec<T> {
    let size = |size| usize::try_from(size).expect("a size in memory");
    let (rows, columns) = (size(rows), size(columns));
    let of_row = |row: usize| (0..columns).map(move |column| values[column * rows + row].clone());
    (0..rows).flat_map(of_row).collect()
}
