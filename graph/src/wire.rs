//! Iterates over the fields of a protobuf message without decoding them, so that messages are counted before memory is
//! allocated for them.

use prost::{
    DecodeError,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

/// The error of a message that is not protobuf.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a field is longer than the rest of its message")]
    Truncated,
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// The payload of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    /// A string, bytes, message or packed list.
    Bytes(&'a [u8]),
    /// An integer.
    Varint(u64),
    /// Any other wire type.
    Fixed,
}

/// Iterates over `(field number, payload)`; ends after the first error.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<(u32, Payload<'a>), WireError> {
        let (number, wire_type) = decode_key(&mut self.rest)?;
        let payload = match wire_type {
            WireType::Varint => Payload::Varint(decode_varint(&mut self.rest)?),
            WireType::LengthDelimited => Payload::Bytes(self.read_bytes()?),
            other => {
                skip_field(other, number, &mut self.rest, DecodeContext::default())?;
                Payload::Fixed
            }
        };
        Ok((number, payload))
    }

    fn read_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = decode_varint(&mut self.rest)?;
        let (bytes, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// Returns the first string, bytes or message of a field, in the readable part of the message.
pub(crate) fn bytes_field(message: &[u8], number: u32) -> Option<&[u8]> {
    Fields::of(message).map_while(Result::ok).find_map(|field| match field {
        (found, Payload::Bytes(bytes)) if found == number => Some(bytes),
        _ => None,
    })
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Payload<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}
