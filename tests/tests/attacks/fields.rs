//! Every field of every call, as the descriptors of the protos list them, with values as large or as many as a message holds.

use hlorank_proto::{FILE_DESCRIPTOR_SET, methods::METHODS};
use hlorank_tests::prelude::*;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::cases::Case;

/// A field, and the fields around it.
type Path = Vec<FieldDescriptor>;

/// Bytes of a list or text.
const MESSAGE_BYTES: usize = 2 << 20;

/// Walks through the fields. In brief, each field of a message is sent in the first call that has it.
pub(crate) fn field_cases(is_brief: bool) -> Vec<Case> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors of our own");
    let mut known = BTreeSet::new();
    let mut cases = Vec::new();
    for method in METHODS {
        let service = pool.get_service_by_name(method.service).expect("a service");
        let input = service.methods().find(|each| each.name() == method.name);
        let input = input.expect("a method").input();
        for path in paths(&input, &[]) {
            let field = path.last().expect("a field");
            if known.insert(field.full_name().to_owned()) || !is_brief {
                let name = format!("{} of {}", field.full_name(), method.name);
                let call = format!("/{}/{}", method.service, method.name);
                cases.push(Case::of_path(name, call, move |number| {
                    vec![message(&path, number)]
                }));
            }
        }
    }
    cases
}

/// The fields of a message, and of the messages in it.
fn paths(message: &MessageDescriptor, around: &[FieldDescriptor]) -> Vec<Path> {
    let mut all = Vec::new();
    for field in message.fields() {
        let path = [around, std::slice::from_ref(&field)].concat();
        // A message in itself says nothing new.
        if let Kind::Message(inner) = field.kind()
            && !around.iter().any(|outer| outer.kind() == field.kind())
        {
            all.extend(paths(&inner, &path));
        }
        all.push(path);
    }
    all
}

/// A message with nothing but the last field of a path.
fn message(path: &[FieldDescriptor], number: u32) -> Vec<u8> {
    let (field, around) = path.split_last().expect("a field");
    let mut message = values(field, number);
    for outer in around.iter().rev() {
        message = nested(outer.number(), &message);
    }
    message
}

/// The field, as long or as often as fits. The number is a part of it.
fn values(field: &FieldDescriptor, number: u32) -> Vec<u8> {
    let text = format!("{number:010}");
    match field.kind() {
        // The last of several counts, or all of them if the field is repeated.
        Kind::Message(_) => nested(field.number(), &[]).repeat(MESSAGE_BYTES / 2),
        Kind::String | Kind::Bytes if field.is_list() => {
            let one = nested(field.number(), text.as_bytes());
            one.repeat(MESSAGE_BYTES / one.len())
        }
        Kind::String | Kind::Bytes => nested(
            field.number(),
            text.repeat(MESSAGE_BYTES / text.len()).as_bytes(),
        ),
        Kind::Double if field.is_list() => nested(
            field.number(),
            &f64::from(number).to_le_bytes().repeat(MESSAGE_BYTES / 8),
        ),
        Kind::Float if field.is_list() => nested(
            field.number(),
            &(number as f32).to_le_bytes().repeat(MESSAGE_BYTES / 4),
        ),
        // Numbers of one byte each.
        _ if field.is_list() => nested(field.number(), &vec![1; MESSAGE_BYTES]),
        Kind::Double | Kind::Float => Vec::new(),
        _ => {
            let mut largest = Vec::new();
            encode_key(field.number(), WireType::Varint, &mut largest);
            encode_varint(u64::from(u32::MAX - number), &mut largest);
            largest
        }
    }
}

fn nested(field: u32, inside: &[u8]) -> Vec<u8> {
    let mut outside = Vec::with_capacity(inside.len() + 16);
    encode_key(field, WireType::LengthDelimited, &mut outside);
    encode_varint(inside.len() as u64, &mut outside);
    outside.extend(inside);
    outside
}

/// The fields of the forms of configurations.
pub(crate) fn forms() -> Vec<String> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors of our own");
    let batch = pool.get_message_by_name("hlorank.v1.ConfigBatch");
    let fields = batch.expect("the message").fields().collect::<Vec<_>>();
    fields.iter().map(|field| field.name().to_owned()).collect()
}
