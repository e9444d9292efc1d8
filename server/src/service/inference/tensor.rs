//! Reads the tensors of a call.

use bytes::{Buf as _, Bytes};
use hlorank_proto::inference::TensorMetadata;
use prost::Message as _;

use super::inputs::Described;
use crate::service::ServiceError;

/// An input of a call.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    /// Little endian, row-major.
    pub(super) values: Bytes,
}

/// The inputs of a call that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Tensors(Vec<(TensorMetadata, Bytes)>);

/// Maximum size of an encoded description of a tensor. One that has values is larger.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// Maximum number of inputs.
const MAX_INPUTS: usize = 8;

impl Tensors {
    /// Reads the descriptions of inputs, each of which belongs to the values at its position.
    pub(super) fn read(inputs: &[Bytes], values: Vec<Bytes>) -> Result<Self, ServiceError> {
        check_count(inputs, values.len())?;
        let read = |input: &Bytes| TensorMetadata::decode(input.as_ref());
        let described: Result<Vec<_>, _> = inputs.iter().map(read).collect();
        let described = described
            .map_err(|error| ServiceError::invalid("inputs", error.to_string(), "tensors"))?;
        Ok(Self(described.into_iter().zip(values).collect()))
    }

    /// Takes an input, and checks its type, its shape and the number of its values. Returns `None` if the call does not have it.
    pub(super) fn take(&mut self, input: &Described) -> Result<Option<Tensor>, ServiceError> {
        let mut inputs = self.0.iter();
        let Some(position) = inputs.position(|(found, _)| found.name == input.name) else {
            return Ok(None);
        };
        let (found, values) = self.0.swap_remove(position);
        let bytes = values.len();
        let tensor = input.tensor(&found, values);
        tensor
            .map(Some)
            .ok_or_else(|| input.mismatch(&found, bytes))
    }

    /// Checks that every input was taken.
    pub(super) fn check_rest(&self) -> Result<(), ServiceError> {
        self.0.first().map_or(Ok(()), |(input, _)| {
            let found = format!("`{:.100}` beside the rest of the call", input.name);
            let expected = "one graph, and configurations, as ModelMetadata lists them";
            Err(ServiceError::invalid("inputs", found, expected))
        })
    }
}

/// Returns a shape whose sizes can be those of memory.
fn sizes(shape: &[i64]) -> Option<Vec<usize>> {
    let sizes = shape.iter().map(|size| usize::try_from(*size).ok());
    sizes.collect()
}

/// Checks the number and the size of descriptions, given the number of values.
fn check_count(inputs: &[Bytes], values: usize) -> Result<(), ServiceError> {
    // The sizes of a description take many times their bytes in memory, and the call does not hold
    // it.
    let is_long = |input: &Bytes| input.len() > MAX_DESCRIPTION_BYTES;
    let count = inputs.len();
    if count == values && count <= MAX_INPUTS && !inputs.iter().any(is_long) {
        return Ok(());
    }
    let found = format!("{values} tensors for {count} inputs");
    let expected = format!("all values of at most {MAX_INPUTS} inputs");
    Err(ServiceError::invalid("raw_input_contents", found, expected))
}

impl Described {
    /// Returns a tensor; `None` if it has another type or shape, a size of 0, or not as many values as its shape says.
    fn tensor(&self, found: &TensorMetadata, mut values: Bytes) -> Option<Tensor> {
        if found.datatype != self.datatype || !self.allows(&found.shape) {
            return None;
        }
        let shape = sizes(&found.shape)?;
        let value_bytes = self.value_bytes(&mut values)?;
        // The shape comes from the client, and its product may exceed any number.
        let mut sizes = shape.iter();
        let bytes = sizes.try_fold(value_bytes, |bytes, size| bytes.checked_mul(*size))?;
        let fits = !shape.contains(&0) && bytes == values.len();
        fits.then_some(Tensor { shape, values })
    }

    /// The error of a tensor that is found instead.
    fn mismatch(&self, found: &TensorMetadata, bytes: usize) -> ServiceError {
        let found = format!("{:.20} {:?} of {bytes} bytes", found.datatype, found.shape);
        let expected = format!("{} {:?} and its values", self.datatype, self.shape);
        ServiceError::invalid(self.name, found, expected)
    }

    fn allows(&self, shape: &[i64]) -> bool {
        let mut sizes = shape.iter().zip(self.shape);
        shape.len() == self.shape.len()
            && sizes.all(|(size, described)| *described < 0 || size == described)
    }

    /// Returns the size of a value. Takes the length of a text off the values.
    fn value_bytes(&self, values: &mut Bytes) -> Option<usize> {
        match self.datatype {
            "BOOL" | "INT8" | "UINT8" => Some(1),
            // A single value, as described, follows its length.
            "BYTES" => usize::try_from(values.try_get_u32_le().ok()?).ok(),
            _ => Some(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::inputs::{CONFIGURATIONS, GRAPHS},
        *,
    };

    fn read(
        name: &str,
        datatype: &str,
        shape: &[i64],
        values: &[u8],
    ) -> Result<Tensors, ServiceError> {
        let described = TensorMetadata {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            shape: shape.to_vec(),
        };
        let inputs = [described.encode_to_vec().into()];
        Tensors::read(&inputs, vec![Bytes::copy_from_slice(values)])
    }

    #[test]
    fn a_tensor_has_its_type_and_shape_and_as_many_values() {
        let take = |input: &Described, datatype, shape: &[i64], values: &[u8]| {
            let mut tensors = read(input.name, datatype, shape, values).unwrap();
            tensors.take(input).map(Option::unwrap)
        };
        let (_, layouts) = &CONFIGURATIONS[0];
        let found = take(layouts, "INT8", &[2, 1, 18], &[0; 36]).unwrap();
        assert_eq!(found.shape, [2, 1, 18]);
        let module = &GRAPHS[1];
        let found = take(module, "BYTES", &[1], b"\x03\0\0\0abc").unwrap();
        assert_eq!(found.values, "abc");
        for (input, datatype, shape, values) in [
            (layouts, "INT8", &[2, 1, 18][..], &[0; 35][..]),
            (layouts, "INT8", &[-2, 1, 18], &[0; 36]),
            (layouts, "INT8", &[2, 18], &[0; 36]),
            (layouts, "INT8", &[2, 2, 9], &[0; 36]),
            (layouts, "UINT8", &[2, 1, 18], &[0; 36]),
            (layouts, "INT8", &[i64::MAX, 0, 18], &[]),
            (layouts, "INT8", &[i64::MAX, i64::MAX, 18], &[]),
            (module, "BYTES", &[1], b"\x04\0\0\0abc"),
            (module, "BYTES", &[1], b"\x04\0"),
            (module, "BYTES", &[2], b"\x01\0\0\0a\x01\0\0\0b"),
        ] {
            let found = take(input, datatype, shape, values);
            assert!(found.is_err(), "{datatype} {shape:?} {values:?}");
        }
    }

    #[test]
    fn an_input_that_nobody_takes_is_refused() {
        let mut image = read("image", "FP32", &[1], &[0; 4]).unwrap();
        assert!(image.take(&GRAPHS[0]).unwrap().is_none());
        let refused = image.check_rest().unwrap_err().to_string();
        assert!(refused.contains("`image`"), "{refused}");
    }

    #[test]
    fn a_description_with_values_is_refused_before_it_is_read() {
        let shape = vec![1; MAX_DESCRIPTION_BYTES];
        assert!(read("layouts", "INT8", &shape, &[0]).is_err());
        assert!(Tensors::read(&[], vec![Bytes::new()]).is_err());
        let inputs = vec![Bytes::new(); MAX_INPUTS + 1];
        assert!(Tensors::read(&inputs, inputs.clone()).is_err());
    }
}
