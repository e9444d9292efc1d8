//! Reads the message of a call from JSON.

use std::{fmt, sync::LazyLock};

use bytes::Bytes;
use hlorank_proto::FILE_DESCRIPTOR_SET;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, ServiceDescriptor};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::Track;

use crate::errors::DeliveryError;

/// Descriptors of every service and message.
static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the build has checked the descriptors")
});

/// The unary method of a call whose messages are JSON.
#[derive(Clone, Debug)]
pub(crate) struct JsonMethod {
    pub(super) method: MethodDescriptor,
}

impl JsonMethod {
    /// Returns the method of a path, such as `/hlorank.v1.ModelService/ListModels`; `None` if there is none, or if it is a
    /// stream.
    pub(super) fn at_path(path: &str) -> Option<Self> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        let service = DESCRIPTORS.get_service_by_name(service)?;
        let method = service.methods().find(|method| method.name() == name)?;
        Self::unary(method)
    }

    fn unary(method: MethodDescriptor) -> Option<Self> {
        // The messages of a stream are frames, which JSON does not have.
        let is_unary = !method.is_client_streaming() && !method.is_server_streaming();
        is_unary.then_some(Self { method })
    }

    /// Returns every unary method of a service.
    pub(super) fn all_in_service(name: &str) -> Vec<Self> {
        let service = DESCRIPTORS.get_service_by_name(name);
        let methods = service.iter().flat_map(ServiceDescriptor::methods);
        methods.filter_map(Self::unary).collect()
    }
}

/// A message that arrives as JSON.
pub(crate) struct JsonMessage {
    method: JsonMethod,
    bytes: Vec<u8>,
    limit: usize,
    values: ValueCount,
}

/// Counts what becomes a value in memory: numbers, words, texts, lists and messages.
#[derive(Default)]
struct ValueCount {
    values: usize,
    is_in_text: bool,
    is_escaped: bool,
}

/// Maximum number of bytes that a value takes in memory while a message is read, its share in a list that grows included.
const VALUE_BYTES: usize = 320;

impl JsonMessage {
    pub(crate) fn new(method: JsonMethod, limit: usize) -> Self {
        Self {
            method,
            bytes: Vec::new(),
            limit,
            values: ValueCount::default(),
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), DeliveryError> {
        let found = self.bytes.len() + bytes.len();
        let limit = self.limit;
        if found > limit {
            return Err(DeliveryError::TooLarge { found, limit });
        }
        self.values.add(bytes);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Number of bytes that have arrived.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Maximum number of bytes that reading takes: the values, their texts, and the message that is made of them.
    pub(crate) fn bytes_to_read(&self) -> usize {
        self.values.values * VALUE_BYTES + 2 * self.bytes.len()
    }

    /// Returns the message in protobuf's form.
    pub(crate) fn read(self) -> Result<Bytes, DeliveryError> {
        let mut json = serde_json::Deserializer::from_slice(&self.bytes);
        let mut track = Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
        let message = DynamicMessage::deserialize(self.method.method.input(), tracked);
        // A second value behind the message would be dropped silently.
        let message = message.and_then(|message| json.end().map(|()| message));
        let message = message.map_err(|error| DeliveryError::from_json(track, &error))?;
        // The check follows the reader, because it takes every key for the name of a field.
        check_keys(&self.bytes)?;
        Ok(message.encode_to_vec().into())
    }
}

impl ValueCount {
    /// Counts what begins a value, so that the count is known before the message is complete.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_text => self.is_escaped = true,
                b'"' => self.is_in_text = !self.is_in_text,
                b',' | b':' | b'[' | b'{' if !self.is_in_text => self.values += 1,
                _ => {}
            }
        }
    }
}

/// Reads a value for its keys alone.
struct Keys;

/// Refuses a value, because its key was given before.
struct RepeatedKey {
    key: String,
    /// The name of the field in JSON.
    name: String,
}

/// Checks that no object has a key twice, in one spelling or in both. The message has been read before, so that every key is
/// the name of a field.
pub(super) fn check_keys(json: &[u8]) -> Result<(), DeliveryError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let read = Keys.deserialize(tracked);
    read.map_err(|error| DeliveryError::from_json(track, &error))
}

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> DeserializeSeed<'de> for RepeatedKey {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        let Self { key, name } = self;
        let spelling = if key == name {
            String::new()
        } else {
            format!(", once as `{name}`")
        };
        Err(D::Error::custom(format_args!(
            "the field `{key}` is given twice{spelling}"
        )))
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Every key is the name of a field, so the list stays short.
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let name = camel_case(&key);
            if seen.contains(&name) {
                // The place of the value has the key.
                return map.next_value_seed(RepeatedKey { key, name });
            }
            seen.push(name);
            map.next_value_seed(Self)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Returns the name of a field in JSON, as protobuf makes it of the name in the `.proto` file.
fn camel_case(name: &str) -> String {
    let mut letters = String::with_capacity(name.len());
    let mut is_upper = false;
    for letter in name.chars() {
        match letter {
            '_' => is_upper = true,
            letter if is_upper => {
                letters.push(letter.to_ascii_uppercase());
                is_upper = false;
            }
            letter => letters.push(letter),
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::{RankConfigsRequest, config_batch::Configs, graph::Source};
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Bytes, DeliveryError> {
        let method = JsonMethod::at_path("/hlorank.v1.CostModelService/RankConfigs").unwrap();
        let mut message = JsonMessage::new(method, 1000);
        json.as_bytes()
            .chunks(7)
            .try_for_each(|bytes| message.push(bytes))?;
        message.read()
    }

    #[test]
    fn names_in_either_case_bytes_and_enums_are_read() {
        let json = r#"{"graph": {"graph_hash": "AQID", "task": "TASK_TILE"}, "topK": 3,
            "batch": {"tileConfigs": {"configs": [{"outputBounds": [8, "128"]}]}}}"#;
        let request = RankConfigsRequest::decode(read(json).unwrap()).unwrap();
        assert_eq!(
            request.graph.unwrap().source,
            Some(Source::GraphHash(vec![1, 2, 3].into()))
        );
        assert_eq!(request.top_k, 3);
        let Some(Configs::TileConfigs(tiles)) = request.batch.unwrap().configs else {
            unreachable!("tiles were sent")
        };
        assert_eq!(tiles.configs[0].output_bounds, [8, 128]);
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        for (json, words) in [
            (r#"{"grahp": {}}"#, "unrecognized field name 'grahp'"),
            ("{} {}", "trailing characters"),
            ("", "EOF"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn values_are_counted_outside_texts() {
        let mut count = ValueCount::default();
        let text = br#"{"a": [1, 2, {}], "b,[": "x,\"[{:"}"#;
        for bytes in text.chunks(1) {
            count.add(bytes);
        }
        assert_eq!(count.values, 8);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(json in ".*") {
            let _ = read(&json);
        }
    }

    #[test]
    fn a_field_that_is_given_twice_is_named() {
        let refused = |json: &str| match check_keys(json.as_bytes()).unwrap_err() {
            DeliveryError::Json { field, reason } => (field, reason),
            other => unreachable!("{other}"),
        };
        let (field, reason) = refused(r#"{"topK": 1, "topK": 2}"#);
        assert_eq!(field, "topK");
        assert!(
            reason.starts_with("the field `topK` is given twice"),
            "{reason}"
        );
        let (field, reason) =
            refused(r#"{"batch": {"configs": [{}, {"a_b": 1, "c": null, "aB": [1]}]}}"#);
        assert_eq!(field, "batch.configs[1].aB");
        assert!(reason.contains("`aB`"), "{reason}");
        assert!(refused(r#"{"\u0061": 1, "a": 1}"#).1.contains("`a`"));
        assert!(check_keys(br#"{"a": {"b": -1}, "b": [{"b": 1.5}, {"b": "b"}, true]}"#).is_ok());
    }
}
