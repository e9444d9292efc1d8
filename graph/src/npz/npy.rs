use std::io::{self, BufReader, Read};

use crate::shortened;

/// Maximum bytes of the header of an array. Headers of numpy have about a hundred.
const MAX_HEADER: usize = 4096;

/// Maximum number of dimensions of an array. Those of `TpuGraphs` have at most three.
const MAX_DIMENSIONS: usize = 8;

/// An array in the format of numpy: a header and the numbers after it.
pub(super) struct Npy<R> {
    /// Type of the numbers, such as `<f4`.
    kind: String,
    shape: Vec<usize>,
    /// Number of numbers.
    count: usize,
    numbers: BufReader<R>,
}

impl<R: Read> Npy<R> {
    /// Reads a header: the text of a Python dictionary, as numpy writes it.
    pub(super) fn new(mut file: R) -> Result<Self, String> {
        let header = read_header(&mut file).map_err(|error| error.to_string())?;
        let field = |name: &str| {
            let value = header.split_once(&format!("'{name}':")).map(|(_, value)| value.trim_start());
            value.ok_or_else(|| format!("its header has no {name}"))
        };
        if !field("fortran_order")?.starts_with("False") {
            return Err("not in C order".to_owned());
        }
        let kind = shortened(field("descr")?.split('\'').nth(1).unwrap_or_default());
        let shape = read_shape(field("shape")?).ok_or("its header has an invalid shape")?;
        let count = shape.iter().try_fold(1, |count: usize, &size| count.checked_mul(size));
        let count =
            count.ok_or_else(|| format!("has shape {shape:?}, more numbers than memory can address"))?;
        Ok(Self { kind, shape, count, numbers: BufReader::new(file) })
    }

    /// Fails if there are more than `limit` numbers.
    pub(super) fn at_most(&self, limit: usize) -> Result<&Self, String> {
        if self.count <= limit {
            return Ok(self);
        }
        Err(format!("has shape {:?}, more than {limit} numbers", self.shape))
    }

    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the numbers in C order.
    pub(super) fn numbers<const BYTES: usize, T>(
        mut self,
        number: impl Fn([u8; BYTES]) -> T,
    ) -> impl Iterator<Item = io::Result<T>> {
        (0..self.count).map(move |_| {
            let mut bytes = [0; BYTES];
            self.numbers.read_exact(&mut bytes)?;
            Ok(number(bytes))
        })
    }
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
    let sizes = sizes.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes: Option<Vec<usize>> = sizes.map(|size| size.parse().ok()).collect();
    sizes.filter(|sizes| sizes.len() <= MAX_DIMENSIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, numbers: &[u8]) -> Vec<u8> {
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), numbers].concat()
    }

    fn refused(file: &[u8]) -> String {
        Npy::new(file).err().expect("a refusal")
    }

    #[test]
    fn an_array_of_numpy_is_read() {
        let file = npy(
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }  \n",
            &[1, 0, 0, 0, 2, 0, 0, 0, 9],
        );
        let read = Npy::new(&file[..]).unwrap();
        assert_eq!((read.kind(), read.shape()), ("<i4", &[2, 1][..]));
        let numbers: io::Result<Vec<i32>> = read.numbers(i32::from_le_bytes).collect();
        assert_eq!(numbers.unwrap(), [1, 2]);
        let scalar = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", &[7]);
        assert_eq!(Npy::new(&scalar[..]).unwrap().numbers(|[byte]| byte).count(), 1);
    }

    #[test]
    fn a_shape_of_more_numbers_than_memory_can_address_is_refused() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }";
        assert!(refused(&npy(header, &[])).contains("4294967296, 4294967296"));
    }

    #[test]
    fn a_header_over_the_limit_is_not_read() {
        let claimed = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
        assert_eq!(refused(&claimed), "its header has 4294967295 bytes, at most 4096 are allowed");
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for (header, what) in [
            ("{'descr': '<f4', 'fortran_order': False, }", "no shape"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "C order"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, x), }", "an invalid shape"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "an invalid shape"),
        ] {
            let refused = refused(&npy(header, &[]));
            assert!(refused.contains(what), "{refused}");
        }
        assert_eq!(refused(b"\x89NUMPY\x01\x00\x00\x00"), "not an npy file");
    }
}
