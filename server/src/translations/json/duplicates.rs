//! Refuses messages that give a field twice, of which the reader would take the last.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::Track;

use crate::errors::DeliveryError;

/// Reads a value for its keys alone.
struct Keys;

/// Refuses a value, because its key was given before.
struct Twice {
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
    read.map_err(|error| DeliveryError::of_json(track, &error))
}

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> DeserializeSeed<'de> for Twice {
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
                return map.next_value_seed(Twice { key, name });
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
    use super::*;

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
