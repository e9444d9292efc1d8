use std::io::{self, BufReader, Read};

use super::element::Element;
use crate::shortened;

/// Maximum bytes of the header of an array. Headers of numpy have about a hundred.
const MAX_HEADER: usize = 4096;

/// Maximum number of dimensions of an array. Those of `TpuGraphs` have at most three.
const MAX_DIMENSIONS: usize = 8;

/// Maximum number of numbers of an array in column-major order, which is in memory as a whole.
const MAX_COLUMN_MAJOR: usize = 1 << 28;

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

    /// Fails if there are too many numbers to be in memory as a whole.
    fn fits_memory(self) -> Result<Self, String> {
        self.at_most(MAX_COLUMN_MAJOR).map_err(|error| {
            format!("{error} in column-major order; save it in row-major order, with numpy.ascontiguousarray")
        })
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Calls `take` with every number in row-major order, converted by `convert`.
    pub(super) fn visit<T: Copy, E: ToString>(
        mut self,
        convert: impl Fn(Element, [u8; 8]) -> Result<T, E>,
        mut take: impl FnMut(T) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.is_column_major {
            return (0..self.count).try_for_each(|_| take(self.next(&convert)?));
        }
        self = self.fits_memory()?;
        // The vector grows with the numbers that are read, because the count is a claim of the
        // header.
        let mut stored = Vec::new();
        for _ in 0..self.count {
            stored.push(self.next(&convert)?);
        }
        column_major_places(&self.shape).try_for_each(|place| take(stored[place]))
    }

    fn next<T, E: ToString>(
        &mut self,
        convert: impl Fn(Element, [u8; 8]) -> Result<T, E>,
    ) -> Result<T, String> {
        let mut bytes = [0; 8];
        let read = self.numbers.read_exact(&mut bytes[..self.element.width()]);
        read.map_err(|error| error.to_string())?;
        convert(self.element, bytes).map_err(|error| error.to_string())
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
        let kind = kind_of_others(descr);
        format!("has type `{}`{kind}, {EXPECTED}", shortened(descr))
    })
}

/// Returns what the numbers of a type that is not read are, if it is a common one.
fn kind_of_others(descr: &str) -> &'static str {
    match descr.trim_start_matches(['<', '>', '|', '=']).get(..1) {
        Some("O") => " (Python objects)",
        Some("U" | "S") => " (text)",
        Some("V") => " (such as bfloat16)",
        Some("c") => " (complex numbers)",
        _ => "",
    }
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
        let take = |number| {
            read.push(number);
            Ok(())
        };
        Npy::new(file)
            .unwrap()
            .visit(Element::integer, take)
            .unwrap();
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
}
