//! Iterates over the fields of a protobuf message without decoding them, so that messages are counted before memory is
//! allocated for them.

use crate::pace;

use prost::{
    DecodeError,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

/// The error of a message that is not protobuf.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a field is longer than the rest of its message")]
    Truncated,
    #[error("field {0} has the wrong wire type")]
    WireType(u32),
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
    pub(crate) fn new(message: &'a [u8]) -> Self {
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
            // The length is a claim of the sender, and may exceed the message or the range of
            // `usize`.
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// Iterates over the numbers of a repeated field, whether they are packed or not; ends after the first error.
pub(crate) fn numbers(message: &[u8], number: u32) -> Numbers<'_> {
    Numbers {
        fields: Fields::new(message),
        number,
        packed: &[],
    }
}

/// See [`numbers`].
#[derive(Clone, Debug)]
pub(crate) struct Numbers<'a> {
    fields: Fields<'a>,
    number: u32,
    /// The rest of a packed list.
    packed: &'a [u8],
}

/// Number of fields between two pauses.
const FIELDS: usize = 64;

/// Iterates over the messages, strings or bytes of a field; ends after the first error.
pub(crate) fn messages(
    message: &[u8],
    number: u32,
) -> impl Iterator<Item = Result<&[u8], WireError>> {
    pace::in_steps(FIELDS, Fields::new(message)).filter_map(move |field| match field {
        Ok((found, _)) if found != number => None,
        Ok((_, Payload::Bytes(bytes))) => Some(Ok(bytes)),
        Ok(_) => Some(Err(WireError::WireType(number))),
        Err(error) => Some(Err(error)),
    })
}

/// Returns the number of messages, strings or bytes of a field.
pub(crate) fn count_messages(message: &[u8], number: u32) -> Result<usize, WireError> {
    messages(message, number).try_fold(0, |count, each| each.map(|_| count + 1))
}

/// Returns the number of numbers of a repeated field.
pub(crate) fn count_numbers(message: &[u8], number: u32) -> Result<usize, WireError> {
    numbers(message, number).try_fold(0, |count, each| each.map(|_| count + 1))
}

/// Returns a number as the type `uint32`, which keeps the lower bits.
#[expect(clippy::cast_possible_truncation, reason = "as protobuf defines it")]
pub(crate) fn uint32(number: u64) -> u32 {
    number as u32
}

/// Returns a number as the type `int32`, which keeps the lower bits.
pub(crate) fn int32(number: u64) -> i32 {
    uint32(number).cast_signed()
}

/// Returns the last value of an integer field, or 0.
pub(crate) fn last_number(message: &[u8], number: u32) -> Result<u64, WireError> {
    Fields::new(message).try_fold(0, |last, field| match field? {
        (found, _) if found != number => Ok(last),
        (_, Payload::Varint(value)) => Ok(value),
        _ => Err(WireError::WireType(number)),
    })
}

/// Returns the last value of a field of bytes, or no bytes.
pub(crate) fn last_bytes(message: &[u8], number: u32) -> Result<&[u8], WireError> {
    messages(message, number).try_fold(&[][..], |_, bytes| bytes)
}

/// Returns the first string, bytes or message of a field, in the readable part of the message.
pub(crate) fn bytes_field(message: &[u8], number: u32) -> Option<&[u8]> {
    Fields::new(message)
        .map_while(Result::ok)
        .find_map(|field| match field {
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
        // Nothing says where the next field begins, so the first error is the last item.
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl Iterator for Numbers<'_> {
    type Item = Result<u64, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.packed.is_empty() {
                let read = decode_varint(&mut self.packed);
                if read.is_err() {
                    (self.packed, self.fields.rest) = (&[], &[]);
                }
                return Some(read.map_err(WireError::from));
            }
            match self.fields.next()? {
                Ok((number, _)) if number != self.number => {}
                // The list may be empty, so the loop goes on instead of returning its first number.
                Ok((_, Payload::Bytes(packed))) => self.packed = packed,
                Ok((_, Payload::Varint(value))) => return Some(Ok(value)),
                Ok((number, Payload::Fixed)) => return Some(Err(WireError::WireType(number))),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::LayoutTable;
    use prost::Message as _;

    use super::*;

    #[test]
    fn numbers_are_read_from_both_encodings() {
        let mut message = LayoutTable {
            entries: vec![1, 300, 3],
        }
        .encode_to_vec();
        message.extend([0x08, 7, 0x10, 9, 0x08, 8]);
        let read: Vec<u64> = numbers(&message, 1).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, [1, 300, 3, 7, 8]);
        assert_eq!(
            LayoutTable::decode(&message[..]).unwrap().entries,
            [1, 300, 3, 7, 8]
        );
    }

    #[test]
    fn reading_ends_at_an_error() {
        for wrong in [
            &[0x0a, 2, 1, 0x80][..],
            &[0x08, 0x80],
            &[0x0d, 1, 2, 3, 4],
            &[0x0a, 5, 1],
        ] {
            let mut read = numbers(wrong, 1).skip_while(Result::is_ok);
            assert!(
                read.next().is_some_and(|number| number.is_err()),
                "{wrong:?}"
            );
            assert!(LayoutTable::decode(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_last_value_counts() {
        let message = [0x08, 1, 0x08, 2, 0x12, 1, 7, 0x12, 2, 8, 9];
        assert_eq!(last_number(&message, 1).unwrap(), 2);
        assert_eq!(last_bytes(&message, 2).unwrap(), [8, 9]);
        assert_eq!(
            (
                last_number(&message, 3).unwrap(),
                last_bytes(&message, 3).unwrap().len()
            ),
            (0, 0)
        );
        assert!(last_number(&message, 2).is_err() && last_bytes(&message, 1).is_err());
    }
}
