//! Reads the message of a call from JSON.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_path_to_error::Track;

use super::{duplicates::check_keys, method::JsonMethod};
use crate::errors::DeliveryError;

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
        let message = message.map_err(|error| DeliveryError::of_json(track, &error))?;
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

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::{
        ListModelsRequest, RankConfigsRequest, config_batch::Configs, graph::Source,
    };
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Bytes, DeliveryError> {
        let method = JsonMethod::of("/hlorank.v1.CostModelService/RankConfigs").unwrap();
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
    fn an_error_names_field_and_position() {
        let error = |json| match read(json).unwrap_err() {
            DeliveryError::Json { field, reason } => (field, reason),
            other => unreachable!("{other}"),
        };
        let (field, reason) =
            error(r#"{"batch": {"tileConfigs": {"configs": [{}, {"outputBounds": ["x"]}]}}}"#);
        assert_eq!(field, "batch.tileConfigs.configs[1].outputBounds[0]");
        assert!(reason.contains("line 1 column"), "{reason}");
        assert!(
            error(r#"{"grahp": {}}"#)
                .1
                .contains("unrecognized field name 'grahp'")
        );
        assert!(error("{} {}").1.contains("trailing characters"));
        assert!(error("").1.contains("EOF"));
        assert!(error(&"[".repeat(500)).1.len() < 300, "nesting is limited");
    }

    #[test]
    fn a_long_message_is_refused_before_it_is_kept() {
        let long = format!("{{\"topK\": {}3}}", " ".repeat(1000));
        assert!(matches!(
            read(&long),
            Err(DeliveryError::TooLarge { limit: 1000, .. })
        ));
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
    fn an_empty_message_is_an_object() {
        let method = JsonMethod::of("/hlorank.v1.ModelService/ListModels").unwrap();
        let mut message = JsonMessage::new(method, 10);
        message.push(b"{}").unwrap();
        assert_eq!(
            ListModelsRequest::decode(message.read().unwrap()).unwrap(),
            ListModelsRequest {}
        );
    }
}
