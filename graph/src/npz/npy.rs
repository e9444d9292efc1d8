//! The types of numbers that arrays may have.

use std::io::{self, BufReader, Read};

use crate::shortened;

/// Maximum bytes of the header of an array. Headers of numpy have about a hundred.
const MAX_HEADER: usize = 4096;

/// Maximum number of dimensions of an array. Those of `TpuGraphs` have at most three.
const MAX_DIMENSIONS: usize = 8;

/// Maximum number of numbers of an array in column-major order, which is in memory as a whole.
const MAX_COLUMN_MAJOR: usize = 1 << 27;

/// An array in the format of numpy: a header and the numbers after it.
pub(super) struct Npy<R> {
    element: Element,
    shape: Vec<usize>,
    is_column_major: bool,
    /// Number of numbers.
    count: usize,
    numbers: BufReader<R>,
}

/// The text of a Python dictionary, as numpy writes it.
struct Header(String);

impl<R: Read> Npy<R> {
    /// Reads the header. The numbers are read when they are visited.
    pub(super) fn new(mut file: R) -> Result<Self, String> {
        let header = Header::read(&mut file).map_err(|error| error.to_string())?;
        let is_column_major = header.field("fortran_order")?.starts_with("True");
        let element = read_element(header.field("descr")?)?;
        let shape = read_shape(header.field("shape")?).ok_or("its header has an invalid shape")?;
        Ok(Self {
            element,
            count: count(&shape)?,
            shape,
            is_column_major,
            numbers: BufReader::new(file),
        })
    }

    /// Fails if there are more than `limit` numbers.
    pub(super) fn at_most(self, limit: usize) -> Result<Self, String> {
        if self.count <= limit {
            return Ok(self);
        }
        Err(format!(
            "has shape {:?}, more than {limit} numbers",
            self.shape
        ))
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Calls `take` with every number in row-major order.
    pub(super) fn visit(
        mut self,
        mut take: impl FnMut(Number) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.is_column_major {
            return (0..self.count).try_for_each(|_| take(self.next()?));
        }
        self = self.at_most(MAX_COLUMN_MAJOR).map_err(|error| {
            format!("{error} in column-major order; save it in row-major order, with numpy.ascontiguousarray")
        })?;
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
fn read_element(descr: &str) -> Result<Element, String> {
    const EXPECTED: &str = "expected integers or floats of at most 64 bits";
    // The type of an array of records is a list in brackets, and every other type is a string.
    let Some(descr) = descr.strip_prefix('\'') else {
        return Err(format!("has records of several fields, {EXPECTED}"));
    };
    let descr = descr.split('\'').next().unwrap_or_default();
    Element::of(descr).ok_or_else(|| {
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

impl Header {
    fn read(file: &mut impl Read) -> io::Result<Self> {
        let length = read_header_length(file)?;
        if length > MAX_HEADER {
            return Err(io::Error::other(format!(
                "its header has {length} bytes, at most {MAX_HEADER} are allowed"
            )));
        }
        let mut header = vec![0; length];
        file.read_exact(&mut header)?;
        String::from_utf8(header)
            .map(Self)
            .map_err(io::Error::other)
    }

    /// Returns the text from the value of a field on.
    fn field(&self, name: &str) -> Result<&str, String> {
        let value = self.0.split_once(&format!("'{name}':"));
        value
            .map(|(_, value)| value.trim_start())
            .ok_or_else(|| format!("its header has no {name}"))
    }
}

/// Reads the magic number, the version and the length of the header, which follow each other.
fn read_header_length(file: &mut impl Read) -> io::Result<usize> {
    let mut start = [0; 8];
    file.read_exact(&mut start)?;
    let [magic @ .., version, _] = start;
    if magic != *b"\x93NUMPY" {
        return Err(io::Error::other("not an npy file"));
    }
    // Version 1 has a length of two bytes, and later versions have one of four.
    let mut length = [0; 4];
    file.read_exact(&mut length[..if version == 1 { 2 } else { 4 }])?;
    Ok(u32::from_le_bytes(length) as usize)
}

/// Returns the number of numbers of an array of this shape.
fn count(shape: &[usize]) -> Result<usize, String> {
    let count = shape
        .iter()
        .try_fold(1, |count: usize, &size| count.checked_mul(size));
    count.ok_or_else(|| format!("has shape {shape:?}, more numbers than memory can address"))
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
struct Element {
    kind: Kind,
    /// Bytes of a number: 1, 2, 4 or 8.
    width: usize,
    is_big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Also bool.
    Unsigned,
    Signed,
    Float,
}

impl Element {
    /// Reads a type as numpy writes it; `None` if it is not one of numbers of at most 64 bits.
    fn of(descr: &str) -> Option<Self> {
        let (order, descr) = descr.split_at_checked(1)?;
        let (kind, width) = descr.split_at_checked(1)?;
        let kind = match (kind, width) {
            ("b", "1") | ("u", "1" | "2" | "4" | "8") => Kind::Unsigned,
            ("i", "1" | "2" | "4" | "8") => Kind::Signed,
            ("f", "2" | "4" | "8") => Kind::Float,
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
            (Kind::Unsigned, _) => Number::Unsigned(value),
            (Kind::Signed, width) => Number::Signed(signed(value, width)),
            (Kind::Float, 2) => Number::Float(half([first, second])),
            (Kind::Float, 4) => {
                Number::Float(f32::from_le_bytes([first, second, third, fourth]).into())
            }
            (Kind::Float, _) => Number::Float(f64::from_le_bytes(bytes)),
        }
    }
}

/// A number of an array.
#[derive(Clone, Copy)]
pub(super) enum Number {
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
    pub(super) fn float(self) -> f32 {
        match self {
            Self::Unsigned(value) => value as f32,
            Self::Signed(value) => value as f32,
            Self::Float(value) => value as f32,
        }
    }

    /// Returns a number as an integer; fails if it is none that fits 64 bits.
    pub(super) fn integer(self) -> Result<i64, String> {
        match self {
            Self::Signed(value) => Ok(value),
            Self::Unsigned(value) => {
                i64::try_from(value).map_err(|_| format!("{value} does not fit 64 bits"))
            }
            Self::Float(value) => {
                whole(value).ok_or_else(|| format!("{value} is not a whole number"))
            }
        }
    }
}

/// Returns a number of `width` bytes in two's complement.
fn signed(value: u64, width: usize) -> i64 {
    let unused = 64 - 8 * width;
    // The shift back is arithmetic, so it fills the upper bits with the sign.
    (value << unused).cast_signed() >> unused
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

/// Returns a whole number that is stored as a float.
fn whole(value: f64) -> Option<i64> {
    // 2^63. No `f64` equals the largest `i64`, so the range ends in front of the next power of two.
    const END: f64 = 9_223_372_036_854_775_808.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within the range"
    )]
    (value.fract() == 0.0 && (-END..END).contains(&value)).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, numbers: &[u8]) -> Vec<u8> {
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [
            &b"\x93NUMPY\x01\x00"[..],
            &length,
            header.as_bytes(),
            numbers,
        ]
        .concat()
    }

    fn refused(file: &[u8]) -> String {
        Npy::new(file).err().expect("a refusal")
    }

    fn integers(file: &[u8]) -> Vec<i64> {
        let mut read = Vec::new();
        let take = |number: Number| {
            read.push(number.integer()?);
            Ok(())
        };
        Npy::new(file).unwrap().visit(take).unwrap();
        read
    }

    #[test]
    fn an_array_of_numpy_is_read() {
        let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }  \n";
        let file = npy(header, &[1, 0, 2, 0, 9]);
        assert_eq!(Npy::new(&file[..]).unwrap().shape(), [2, 1]);
        assert_eq!(integers(&file), [1, 2]);
        assert_eq!(
            integers(&npy(
                "{'descr': '|u1', 'fortran_order': False, 'shape': (), }",
                &[7]
            )),
            [7]
        );
    }

    #[test]
    fn columns_become_rows() {
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }";
        let stored = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
        assert!(integers(&npy(header, &stored)).into_iter().eq(0..12));
    }

    #[test]
    fn a_shape_of_more_numbers_than_memory_can_address_is_refused() {
        let header =
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }";
        assert!(refused(&npy(header, &[])).contains("4294967296, 4294967296"));
    }

    #[test]
    fn a_header_over_the_limit_is_not_read() {
        let claimed = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
        assert_eq!(
            refused(&claimed),
            "its header has 4294967295 bytes, at most 4096 are allowed"
        );
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for (header, what) in [
            ("{'descr': '<f4', 'fortran_order': False, }", "no shape"),
            (
                "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }",
                "Python objects",
            ),
            (
                "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2, 2), }",
                "several fields",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, x), }",
                "an invalid shape",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }",
                "an invalid shape",
            ),
        ] {
            let refused = refused(&npy(header, &[]));
            assert!(refused.contains(what), "{refused}");
        }
        assert_eq!(refused(b"\x89NUMPY\x01\x00\x00\x00"), "not an npy file");
    }

    fn padded<const N: usize>(number: [u8; N]) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&number);
        bytes
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        let number = |descr, bytes| Element::of(descr).unwrap().number(bytes);
        let integer = |descr, bytes| number(descr, bytes).integer();
        assert_eq!(integer("<i2", padded((-7_i16).to_le_bytes())), Ok(-7));
        assert_eq!(integer(">i4", padded((-7_i32).to_be_bytes())), Ok(-7));
        assert_eq!(integer("<f8", padded(3.0_f64.to_le_bytes())), Ok(3));
        assert!(integer("<f4", padded(0.5_f32.to_le_bytes())).is_err());
        assert!(integer("<u8", u64::MAX.to_le_bytes()).is_err());
        assert!(integer("<f8", padded(f64::NAN.to_le_bytes())).is_err());
        let half = |bits: u16| number("<f2", padded(bits.to_le_bytes())).float();
        assert_eq!(
            [half(0x3c00), half(0xc000), half(1), half(0x7bff)],
            [1.0, -2.0, 2f32.powi(-24), 65504.0]
        );
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
        assert_eq!(
            Element::of("|O")
                .or(Element::of("<c8"))
                .or(Element::of("<U4")),
            None
        );
    }
}
