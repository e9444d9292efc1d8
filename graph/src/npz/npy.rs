//! The types of numbers that arrays may have.

use std::{
    io::{self, BufReader, Cursor, Read, Take},
    path::Path,
};

use npyz::npz::file_name_from_array_name;
use zip::{ZipArchive, read::ZipFile, result::ZipError};

use crate::{ConfigurationError, FileError, recognize::most_unpacked, shortened};

/// Maximum bytes of the header of an array. Headers of numpy have about a hundred.
const MAX_HEADER: usize = 4096;

/// Maximum number of dimensions of an array. Those of `TpuGraphs` have at most three.
const MAX_DIMENSIONS: usize = 8;

/// Maximum number of numbers of an array in column-major order, which is in memory as a whole.
const MAX_COLUMN_MAJOR: usize = 1 << 27;

/// An array in the format of numpy: a header and the numbers after it.
struct Npy<R> {
    element: NpyType,
    shape: Vec<usize>,
    is_column_major: bool,
    /// Number of numbers.
    count: usize,
    /// Maximum number of their bytes for what keeps all of them.
    most_bytes: u64,
    numbers: BufReader<R>,
}

impl<R: Read> Npy<R> {
    /// Reads the header of an array of this many compressed bytes. The numbers are read when they are visited.
    pub(super) fn new(mut file: R, compressed: u64) -> Result<Self, String> {
        // The text of a Python dictionary, as numpy writes it.
        let header = read_header(&mut file).map_err(|error| error.to_string())?;
        // The text from the value of a field on.
        let field = |name: &str| {
            let value = header.split_once(&format!("'{name}':"));
            value
                .map(|(_, value)| value.trim_start())
                .ok_or_else(|| format!("its header has no {name}"))
        };
        let is_column_major = field("fortran_order")?.starts_with("True");
        let element = read_element(field("descr")?)?;
        let shape = read_shape(field("shape")?).ok_or("its header has an invalid shape")?;
        let count = shape
            .iter()
            .try_fold(1, |count: usize, &size| count.checked_mul(size));
        let count = count
            .ok_or_else(|| format!("has shape {shape:?}, more numbers than memory can address"))?;
        Ok(Self {
            element,
            count,
            shape,
            is_column_major,
            most_bytes: most_unpacked(compressed),
            numbers: BufReader::new(file),
        })
    }

    /// Fails if there are more than `limit` numbers.
    fn at_most(self, limit: usize) -> Result<Self, String> {
        if self.count <= limit {
            return Ok(self);
        }
        Err(format!(
            "has shape {:?}, more than {limit} numbers",
            self.shape
        ))
    }

    /// Fails if the numbers take many times their compressed bytes. The limits on graphs and batches bound most arrays; this bounds
    /// what may be long, so that a small file does not take the memory of a large one.
    fn in_proportion(self) -> Result<Self, String> {
        let bytes = (self.count as u64).saturating_mul(self.element.width as u64);
        if bytes <= self.most_bytes {
            return Ok(self);
        }
        Err(format!(
            "takes {bytes} bytes when it is decompressed, at most {} are allowed for its compressed size; write the file without \
             compression, as numpy.savez does",
            self.most_bytes
        ))
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Calls `take` with every number in row-major order.
    fn visit(mut self, mut take: impl FnMut(Number) -> Result<(), String>) -> Result<(), String> {
        if !self.is_column_major {
            return (0..self.count).try_for_each(|_| take(self.next()?));
        }
        self = self.at_most(MAX_COLUMN_MAJOR).map_err(|error| {
            format!("{error} in column-major order; save it in row-major order, with numpy.ascontiguousarray")
        })?;
        self = self.in_proportion()?;
        // The vector grows with the numbers that are read, because the count is a claim of the
        // header.
        let mut stored = Vec::new();
        for _ in 0..self.count {
            stored.push(self.next()?);
        }
        column_major_places(&self.shape).try_for_each(|place| take(stored[place]))
    }

    fn next(&mut self) -> Result<Number, String> {
        let mut bytes = [0; 8];
        let read = self.numbers.read_exact(&mut bytes[..self.element.width]);
        read.map_err(|error| error.to_string())?;
        Ok(self.element.number(bytes))
    }
}

/// Returns the places in column-major order of the numbers of an array, in row-major order.
fn column_major_places(shape: &[usize]) -> impl Iterator<Item = usize> {
    let count = shape.iter().product();
    // In column-major order, the first axis varies fastest: the stride of an axis is the product of
    // the sizes of those before it.
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, size| {
            let this = *stride;
            *stride *= size;
            Some(this)
        })
        .collect();
    (0..count).map(move |number| {
        // In row-major order, the last axis varies fastest, so its index is the remainder of the
        // first division.
        let axes = shape.iter().zip(&strides).rev();
        axes.fold((number, 0), |(rest, place), (size, stride)| {
            (rest / size, place + rest % size * stride)
        })
        .1
    })
}

/// Reads the type of the numbers, such as `'<f4'`.
fn read_element(descr: &str) -> Result<NpyType, String> {
    const EXPECTED: &str = "expected integers or floats of at most 64 bits";
    // The type of an array of records is a list in brackets, and every other type is a string.
    let Some(descr) = descr.strip_prefix('\'') else {
        return Err(format!("has records of several fields, {EXPECTED}"));
    };
    let descr = descr.split('\'').next().unwrap_or_default();
    NpyType::parse(descr).ok_or_else(|| {
        let kind = match descr.trim_start_matches(['<', '>', '|', '=']).get(..1) {
            Some("O") => " (Python objects)",
            Some("U" | "S") => " (text)",
            Some("V") => " (such as bfloat16)",
            Some("c") => " (complex numbers)",
            _ => "",
        };
        format!("has type `{}`{kind}, {EXPECTED}", shortened(descr))
    })
}

/// Reads the magic number, the version, and the length of the header, which follow each other, and the header.
fn read_header(file: &mut impl Read) -> io::Result<String> {
    let mut start = [0; 8];
    file.read_exact(&mut start)?;
    let [magic @ .., version, _] = start;
    if magic != *b"\x93NUMPY" {
        return Err(io::Error::other("not an npy file"));
    }
    // Version 1 has a length of two bytes, and later versions have one of four.
    let mut length = [0; 4];
    file.read_exact(&mut length[..if version == 1 { 2 } else { 4 }])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(io::Error::other(format!(
            "its header has {length} bytes, at most {MAX_HEADER} are allowed"
        )));
    }
    let mut header = vec![0; length];
    file.read_exact(&mut header)?;
    String::from_utf8(header).map_err(io::Error::other)
}

/// Reads a shape such as `(3, 140)`; `None` if it is malformed or has too many dimensions.
fn read_shape(text: &str) -> Option<Vec<usize>> {
    let (sizes, _) = text.strip_prefix('(')?.split_once(')')?;
    // A shape of one dimension ends with a comma, as `(3,)`, so a part may be empty.
    let sizes = sizes
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let sizes: Option<Vec<usize>> = sizes.map(|size| size.parse().ok()).collect();
    sizes.filter(|sizes| sizes.len() <= MAX_DIMENSIONS)
}

/// The type of the numbers of an array, such as `<f4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NpyType {
    kind: NpyKind,
    /// Bytes of a number: 1, 2, 4 or 8.
    width: usize,
    is_big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NpyKind {
    /// Also bool.
    Unsigned,
    Signed,
    Float,
}

impl NpyType {
    /// Reads a type as numpy writes it; `None` if it is not one of numbers of at most 64 bits.
    fn parse(descr: &str) -> Option<Self> {
        let (order, descr) = descr.split_at_checked(1)?;
        let (kind, width) = descr.split_at_checked(1)?;
        let kind = match (kind, width) {
            ("b", "1") | ("u", "1" | "2" | "4" | "8") => NpyKind::Unsigned,
            ("i", "1" | "2" | "4" | "8") => NpyKind::Signed,
            ("f", "2" | "4" | "8") => NpyKind::Float,
            _ => return None,
        };
        let width = width.parse().ok()?;
        matches!(order, "<" | ">" | "|" | "=").then_some(Self {
            kind,
            width,
            is_big_endian: order == ">",
        })
    }

    /// Returns a number from its bytes, which are followed by zeros.
    fn number(self, mut bytes: [u8; 8]) -> Number {
        // With its bytes in little-endian order and zeros behind them, a number of any width is
        // read as one of 64 bits.
        if self.is_big_endian {
            bytes[..self.width].reverse();
        }
        let value = u64::from_le_bytes(bytes);
        let [first, second, third, fourth, ..] = bytes;
        match (self.kind, self.width) {
            (NpyKind::Unsigned, _) => Number::Unsigned(value),
            (NpyKind::Signed, width) => {
                // The shift back is arithmetic, so it fills the upper bits with the sign.
                let unused = 64 - 8 * width;
                Number::Signed((value << unused).cast_signed() >> unused)
            }
            (NpyKind::Float, 2) => Number::Float(half([first, second])),
            (NpyKind::Float, 4) => {
                Number::Float(f32::from_le_bytes([first, second, third, fourth]).into())
            }
            (NpyKind::Float, _) => Number::Float(f64::from_le_bytes(bytes)),
        }
    }
}

/// A number of an array.
#[derive(Clone, Copy)]
enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Number {
    /// Returns a number as f32, which arrays of graphs check for being finite.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "as numpy converts it"
    )]
    fn float(self) -> f32 {
        match self {
            Self::Unsigned(value) => value as f32,
            Self::Signed(value) => value as f32,
            Self::Float(value) => value as f32,
        }
    }

    /// Returns a number as an integer; fails if it is none that fits 64 bits.
    fn integer(self) -> Result<i64, String> {
        match self {
            Self::Signed(value) => Ok(value),
            Self::Unsigned(value) => {
                i64::try_from(value).map_err(|_| format!("{value} does not fit 64 bits"))
            }
            Self::Float(value) => {
                // 2^63. No `f64` equals the largest `i64`, so the range ends in front of it.
                const END: f64 = 9_223_372_036_854_775_808.0;
                if value.fract() != 0.0 || !(-END..END).contains(&value) {
                    return Err(format!("{value} is not a whole number"));
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "whole and within the range"
                )]
                Ok(value as i64)
            }
        }
    }
}

/// Returns the value of an IEEE number of 16 bits.
fn half(bytes: [u8; 2]) -> f64 {
    let bits = u16::from_le_bytes(bytes);
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    sign * match exponent {
        // A subnormal number has no implicit leading bit, and the exponent of the smallest normal
        // one.
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        // 1024 is the implicit leading bit; 25 is the bias of the exponent, 15, and the 10 bits of
        // the fraction.
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

/// The name of an axis, and its size unless any is allowed.
type Axis<'a> = (&'a str, Option<usize>);

type Entry<'a> = Take<ZipFile<'a, Cursor<Vec<u8>>>>;

/// A reader of the arrays of an npz file.
pub(super) struct Arrays {
    path: String,
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// Bytes of the file.
    bytes: u64,
    /// What precedes the names of arrays in the archive.
    pub(super) prefix: String,
}

impl Arrays {
    /// Returns a reader of the bytes of a file. Errors name its `path`. The arrays of the file may have at most `limit`
    /// bytes when they are decompressed, by what the file claims; no more than that is decompressed.
    pub(super) fn parse(path: &Path, bytes: Vec<u8>, limit: u64) -> Result<Self, FileError> {
        let path = path.display().to_string();
        let file_bytes = bytes.len() as u64;
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
                bytes: file_bytes,
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

    /// Reads at most `limit` bytes, which are in proportion to their compressed ones.
    pub(super) fn bytes(&mut self, name: &str, limit: usize) -> Result<Vec<u8>, FileError> {
        self.visit(name, |array| {
            let mut bytes = Vec::new();
            array.at_most(limit)?.in_proportion()?.visit(|number| {
                let value = number.integer()?;
                let byte = u8::try_from(value);
                bytes.push(byte.map_err(|_| format!("value {value} is out of range"))?);
                Ok(())
            })?;
            Ok(bytes)
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
            // It grows with what is read, because the length is a claim of the header.
            let mut row = Vec::new();
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
        let file_bytes = self.bytes;
        let visited = match self.archive.by_name(&file) {
            Err(ZipError::FileNotFound) => Err("missing".to_owned()),
            Err(error) => Err(error.to_string()),
            Ok(entry) => {
                // An archive may decompress to more than it claims, and only the claim was compared
                // with the limit.
                let claimed = entry.size();
                // What an entry claims of its compressed bytes may be more than the file has.
                let compressed = entry.compressed_size().min(file_bytes);
                Npy::new(entry.take(claimed), compressed).and_then(visit)
            }
        };
        visited.map_err(|detail| self.error(name, &detail))
    }
}
