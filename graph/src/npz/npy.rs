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

impl<R: Read> Npy<R> {
    /// Reads a header: the text of a Python dictionary, as numpy writes it.
    pub(super) fn new(mut file: R) -> Result<Self, String> {
        let header = read_header(&mut file).map_err(|error| error.to_string())?;
        let field = |name: &str| {
            let value = header
                .split_once(&format!("'{name}':"))
                .map(|(_, value)| value.trim_start());
            value.ok_or_else(|| format!("its header has no {name}"))
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
            shape,
            is_column_major,
            count,
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

    /// Calls `take` with every number in row-major order, converted by `convert`.
    pub(super) fn visit<T: Copy, E: ToString>(
        mut self,
        convert: impl Fn(Element, [u8; 8]) -> Result<T, E>,
        mut take: impl FnMut(T) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.is_column_major {
            return (0..self.count).try_for_each(|_| take(self.next(&convert)?));
        }
        let whole = self.at_most(MAX_COLUMN_MAJOR).map_err(|error| {
            format!("{error} in column-major order; save it in row-major order, with numpy.ascontiguousarray")
        });
        self = whole?;
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
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, size| {
            let this = *stride;
            *stride *= size;
            Some(this)
        })
        .collect();
    (0..count).map(move |number| {
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
    let Some(descr) = descr.strip_prefix('\'') else {
        return Err(format!("has records of several fields, {EXPECTED}"));
    };
    let descr = descr.split('\'').next().unwrap_or_default();
    let reason = match descr.trim_start_matches(['<', '>', '|', '=']).get(..1) {
        Some("O") => " (Python objects)",
        Some("U" | "S") => " (text)",
        Some("V") => " (such as bfloat16)",
        Some("c") => " (complex numbers)",
        _ => "",
    };
    Element::of(descr).ok_or_else(|| format!("has type `{}`{reason}, {EXPECTED}", shortened(descr)))
}

fn read_header(file: &mut impl Read) -> io::Result<String> {
    let mut start = [0; 8];
    file.read_exact(&mut start)?;
    let [magic @ .., version, _] = start;
    if magic != *b"\x93NUMPY" {
        return Err(io::Error::other("not an npy file"));
    }
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
