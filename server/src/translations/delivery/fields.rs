//! Counts the fields of a message while it arrives, because a decoder takes time for each, however small it is.

use crate::call::MAX_REPORT;
use crate::errors::DeliveryError;

/// Counts the fields of a message outside its submessages, and those in groups. Messages that are not protobuf are left
/// to the decoder.
#[derive(Debug, Default)]
pub(super) struct FieldCount {
    fields: usize,
    state: FieldState,
}

#[derive(Debug)]
enum FieldState {
    /// A number of up to 64 bits, seven of them per byte.
    Varint { number: u64, bits: u32, is: Varint },
    /// Bytes of a field that are to come.
    Payload { left: u64 },
    /// The message is not protobuf.
    Unreadable,
}

/// What a number is.
#[derive(Clone, Copy, Debug)]
enum Varint {
    /// The number of a field and the type of its value.
    Key,
    /// The length of its value.
    Length,
    /// Its value.
    Value,
}

/// Maximum number of fields of a message. Most messages of this interface have at most ten; the heavy ones are submessages. A
/// report has an id, a lease, a time and two counts for each of its measurements, and a client may send the numbers one by one.
const MAX_FIELDS: usize = 6 * MAX_REPORT;

impl Default for FieldState {
    fn default() -> Self {
        Self::varint(Varint::Key)
    }
}

impl FieldState {
    fn varint(is: Varint) -> Self {
        Self::Varint {
            number: 0,
            bits: 0,
            is,
        }
    }

    fn payload(left: u64) -> Self {
        if left == 0 {
            Self::default()
        } else {
            Self::Payload { left }
        }
    }

    /// Returns the state after a number.
    fn after(number: u64, is: Varint) -> Self {
        match (is, number & 7) {
            (Varint::Length, _) => Self::payload(number),
            // No field has the number 0.
            (Varint::Key, _) if number < 8 => Self::Unreadable,
            (Varint::Key, 0) => Self::varint(Varint::Value),
            (Varint::Key, 1) => Self::payload(8),
            (Varint::Key, 2) => Self::varint(Varint::Length),
            (Varint::Key, 5) => Self::payload(4),
            (Varint::Key, 6 | 7) => Self::Unreadable,
            // The fields of a group are counted like those around it.
            (Varint::Key | Varint::Value, _) => Self::default(),
        }
    }
}

impl FieldCount {
    /// Counts the fields that begin in the next bytes of the message.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), DeliveryError> {
        while !bytes.is_empty() {
            bytes = match &mut self.state {
                FieldState::Unreadable => return Ok(()),
                FieldState::Payload { left } => {
                    let payload = usize::try_from(*left).unwrap_or(usize::MAX);
                    let skipped = payload.min(bytes.len());
                    self.state = FieldState::payload(*left - skipped as u64);
                    &bytes[skipped..]
                }
                FieldState::Varint { .. } => {
                    self.read_byte(bytes[0])?;
                    &bytes[1..]
                }
            };
        }
        Ok(())
    }

    /// Reads the next byte of a number.
    fn read_byte(&mut self, byte: u8) -> Result<(), DeliveryError> {
        let FieldState::Varint { number, bits, is } = &mut self.state else {
            return Ok(());
        };
        *number |= u64::from(byte & 0x7f) << *bits;
        if byte & 0x80 != 0 {
            *bits += 7;
            // A number of protobuf has at most ten bytes.
            if *bits > 63 {
                self.state = FieldState::Unreadable;
            }
            return Ok(());
        }
        if matches!(is, Varint::Key) {
            self.fields += 1;
        }
        self.state = FieldState::after(*number, *is);
        if self.fields > MAX_FIELDS {
            Err(DeliveryError::TooManyFields { limit: MAX_FIELDS })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::{ModelSelector, PackedTileConfigs, TileConfig};
    use proptest::{collection::vec, prelude::*};
    use prost::Message as _;

    use super::*;

    fn count(chunks: &[&[u8]]) -> Result<FieldCount, DeliveryError> {
        let mut count = FieldCount::default();
        chunks.iter().try_for_each(|chunk| count.read(chunk))?;
        Ok(count)
    }

    #[test]
    fn fields_are_counted_by_their_keys() {
        let packed = PackedTileConfigs {
            config_count: 300,
            bounds: vec![0; 5000].into(),
            ..Default::default()
        };
        let message = packed.encode_to_vec();
        assert_eq!(count(&[&message]).unwrap().fields, 2);
        let bytes: Vec<&[u8]> = message.chunks(1).collect();
        assert_eq!(
            count(&bytes).unwrap().fields,
            2,
            "however the bytes are split"
        );
        let unknown = [
            0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x0b, 0x08, 1, 0x0c,
        ];
        assert_eq!(
            count(&[&unknown]).unwrap().fields,
            5,
            "fixed numbers, and a group with a field"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted(chunks in vec(vec(any::<u8>(), 0..20), 0..20)) {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let whole = chunks.concat();
            prop_assert_eq!(count(&chunks).unwrap().fields, count(&[&whole]).unwrap().fields);
        }

        #[test]
        fn messages_within_a_message_are_one_field(bounds in vec(any::<i64>(), 0..2000), name in ".*") {
            let tile = TileConfig { output_bounds: bounds, ..Default::default() };
            prop_assert!(count(&[&tile.encode_to_vec()]).unwrap().fields <= 1);
            let selector = ModelSelector { name, ..Default::default() };
            prop_assert!(count(&[&selector.encode_to_vec()]).unwrap().fields <= 1);
        }
    }
}
