//! Protobuf messages: fields are changed where they stand, however deep, and the lengths around them with them.

use std::ops::Range;

use fastrand::Rng;
use prost::encoding::{WireType, decode_varint, encode_varint};

use super::{bytes, changes, number};

/// One field of a message.
struct Field {
    number: u32,
    wire_type: u8,
    /// With its key.
    whole: Range<usize>,
    /// Without its key and length.
    payload: Range<usize>,
}

const VARINT: u8 = WireType::Varint as u8;
const BYTES: u8 = WireType::LengthDelimited as u8;

/// Messages inside messages that are looked into; those that are read have fewer.
const MAX_DEPTH: usize = 10;

/// Changes a serialized message.
pub fn mutate_message(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    for _ in 0..changes(random) {
        if random.u8(..16) == 0 {
            bytes::mutate_once(input, other, random);
        } else {
            *input = mutated(input, other, random, 0);
        }
    }
}

/// How many fields of a number a message has at its top; `None` where it is none.
#[must_use]
pub fn field_count(message: &[u8], number: u32) -> Option<usize> {
    Some(fields(message)?.iter().filter(|field| field.number == number).count())
}

/// The fields of a message; `None` where the bytes are none.
fn fields(message: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let start = message.len() - rest.len();
        let key = decode_varint(&mut rest).ok()?;
        let (number, wire_type) = (u32::try_from(key >> 3).ok()?, (key & 7) as u8);
        let mut payload = message.len() - rest.len();
        let length = match wire_type {
            VARINT => {
                let before = rest.len();
                decode_varint(&mut rest).ok()?;
                before - rest.len()
            }
            BYTES => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                payload = message.len() - rest.len();
                rest = rest.get(length..)?;
                length
            }
            1 | 5 => {
                let length = if wire_type == 1 { 8 } else { 4 };
                rest = rest.get(length..)?;
                length
            }
            _ => return None,
        };
        if number == 0 {
            return None;
        }
        let end = payload + length;
        fields.push(Field { number, wire_type, whole: start..end, payload: payload..end });
    }
    Some(fields)
}

fn mutated(message: &[u8], other: &[u8], random: &mut Rng, depth: usize) -> Vec<u8> {
    let Some(fields) = fields(message).filter(|fields| !fields.is_empty()) else {
        return mutated_list(message, other, random);
    };
    let field = &fields[random.usize(..fields.len())];
    let payload = &message[field.payload.clone()];
    let changed = match (field.wire_type, random.u8(..8)) {
        (BYTES, 0..=5) if depth < MAX_DEPTH => {
            of_bytes(field.number, &mutated(payload, other, random, depth + 1))
        }
        (VARINT, 0..=4) => {
            let value = if random.bool() { number(random) } else { near(payload, random) };
            of_varint(field.number, value)
        }
        _ => rearranged(message, &fields, field, other, random),
    };
    spliced(message, &field.whole, &changed)
}

/// What may stand in the place of a field, but for a change of its value.
fn rearranged(message: &[u8], fields: &[Field], field: &Field, other: &[u8], random: &mut Rng) -> Vec<u8> {
    let whole = &message[field.whole.clone()];
    let payload = &message[field.payload.clone()];
    match random.u8(..10) {
        0 | 1 => Vec::new(),
        2 => whole.repeat(1 + random.usize(..3)),
        3 if random.u8(..8) == 0 => whole.repeat(random.usize(..300).min(1 + (1 << 15) / whole.len())),
        3..=5 => {
            let same: Vec<&Field> = fields.iter().filter(|other| other.number == field.number).collect();
            let sibling = same[random.usize(..same.len())];
            [&message[sibling.whole.clone()], whole].concat()
        }
        6 | 7 => match found_field(other, field.number, random, 0) {
            Some(taken) if random.bool() => taken,
            Some(taken) => [&taken, whole].concat(),
            None => Vec::new(),
        },
        8 => {
            let number = 1 + random.u32(..40);
            let mut changed = Vec::new();
            encode_varint(u64::from(number << 3 | u32::from(field.wire_type)), &mut changed);
            changed.extend_from_slice(&whole[whole.len().min(1)..]);
            changed
        }
        _ if field.wire_type == BYTES => {
            // A length that lies.
            let length = if random.bool() { number(random) } else { payload.len() as u64 + 1 };
            let mut changed = Vec::new();
            encode_varint(u64::from(field.number << 3 | u32::from(BYTES)), &mut changed);
            encode_varint(length, &mut changed);
            changed.extend_from_slice(payload);
            changed
        }
        _ => of_bytes(field.number, payload),
    }
}

/// A field of this number from anywhere in a message, or any field where there is none.
fn found_field(message: &[u8], number: u32, random: &mut Rng, depth: usize) -> Option<Vec<u8>> {
    let fields = fields(message).filter(|fields| !fields.is_empty())?;
    let same: Vec<&Field> = fields.iter().filter(|field| field.number == number).collect();
    if !same.is_empty() && random.bool() {
        return Some(message[same[random.usize(..same.len())].whole.clone()].to_vec());
    }
    let field = &fields[random.usize(..fields.len())];
    let inner = &message[field.payload.clone()];
    let deeper = (field.wire_type == BYTES && depth < MAX_DEPTH)
        .then(|| found_field(inner, number, random, depth + 1))
        .flatten();
    Some(deeper.unwrap_or_else(|| message[field.whole.clone()].to_vec()))
}

/// Bytes that are no message: numbers one after the other, a string, or an array.
fn mutated_list(payload: &[u8], other: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut changed = payload.to_vec();
    let numbers = varints(payload);
    match numbers {
        Some(mut numbers) if !numbers.is_empty() && random.u8(..4) > 0 => {
            let at = random.usize(..numbers.len());
            match random.u8(..6) {
                0 => drop(numbers.remove(at)),
                1 => numbers.insert(at, number(random)),
                2 => numbers.insert(at, numbers[random.usize(..numbers.len())]),
                3 => numbers[at] = numbers[random.usize(..numbers.len())],
                _ => numbers[at] = number(random),
            }
            changed.clear();
            for number in numbers {
                encode_varint(number, &mut changed);
            }
        }
        _ => bytes::mutate_once(&mut changed, other, random),
    }
    changed
}

fn varints(mut payload: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !payload.is_empty() {
        numbers.push(decode_varint(&mut payload).ok()?);
    }
    Some(numbers)
}

/// A number beside that of a field.
fn near(mut payload: &[u8], random: &mut Rng) -> u64 {
    let value = decode_varint(&mut payload).unwrap_or_default();
    value.wrapping_add(random.u64(..7)).wrapping_sub(3)
}

fn of_varint(number: u32, value: u64) -> Vec<u8> {
    let mut field = Vec::new();
    encode_varint(u64::from(number << 3 | u32::from(VARINT)), &mut field);
    encode_varint(value, &mut field);
    field
}

fn of_bytes(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(payload.len() + 8);
    encode_varint(u64::from(number << 3 | u32::from(BYTES)), &mut field);
    encode_varint(payload.len() as u64, &mut field);
    field.extend_from_slice(payload);
    field
}

fn spliced(message: &[u8], replaced: &Range<usize>, with: &[u8]) -> Vec<u8> {
    [&message[..replaced.start], with, &message[replaced.end..]].concat()
}

#[cfg(test)]
mod tests {
    use hlorank_proto::xla::{HloComputationProto, HloInstructionProto, HloModuleProto};
    use prost::Message as _;

    use super::*;

    #[test]
    fn most_changed_messages_are_messages_still_and_differ() {
        let instruction = HloInstructionProto { name: "a".to_owned(), id: 1, ..Default::default() };
        let computation = HloComputationProto {
            name: "c".to_owned(),
            instructions: vec![instruction],
            ..Default::default()
        };
        let module =
            HloModuleProto { name: "m".to_owned(), computations: vec![computation], ..Default::default() };
        let module = module.encode_to_vec();
        let mut random = Rng::with_seed(1);
        let mut changed: Vec<Vec<u8>> = vec![module.clone(); 1000];
        for input in &mut changed {
            mutate_message(input, &module, &mut random);
        }
        let decoded = changed.iter().filter(|input| HloModuleProto::decode(&input[..]).is_ok()).count();
        let different = changed.iter().filter(|input| **input != module).count();
        assert!(decoded > 300 && different > 800, "{decoded} decoded, {different} different");
    }
}
