//! Values of decisions: what the readers of each namespace accept, since what one client proposes is read by all.

use prost::Message as _;
use serde_json::Value;

use crate::errors::ServiceError;

/// A namespace, and what its values are.
pub(super) struct Namespace {
    pub(super) name: &'static str,
    form: ValueForm,
}

#[derive(Clone, Copy)]
enum ValueForm {
    Object,
    /// An object of which no entry names a file with code.
    TritonObject,
    Json,
    /// A message of XLA, in its text form or encoded.
    Message,
}

/// Maximum number of bytes of a value.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// The entry of Triton's configurations that names a file, which Triton compiles instead of the kernel.
const IR_OVERRIDE: &str = "ir_override";

const FIELD: &str = "propose.value";

const NAMESPACES: [Namespace; 8] = [
    Namespace::new("space", ValueForm::Object),
    Namespace::new("helion", ValueForm::Object),
    Namespace::new("triton", ValueForm::TritonObject),
    Namespace::new("inductor", ValueForm::Object),
    Namespace::new("kernel-tuner", ValueForm::Object),
    Namespace::new("tvm", ValueForm::Json),
    Namespace::new("optuna", ValueForm::Object),
    Namespace::new("xla", ValueForm::Message),
];

/// Checks that the readers of a namespace accept the value of a decision.
///
/// # Errors
/// If the namespace is unknown, or its readers do not accept the value.
pub fn check_decision_value(namespace: &str, value: &[u8]) -> Result<(), ServiceError> {
    Namespace::named("key.namespace", namespace)?.check(value)
}

impl Namespace {
    const fn new(name: &'static str, form: ValueForm) -> Self {
        Self { name, form }
    }

    /// Finds a namespace by its name.
    pub(super) fn named(field: &'static str, name: &str) -> Result<&'static Self, ServiceError> {
        let found = NAMESPACES.iter().find(|known| known.name == name);
        found.ok_or_else(|| {
            // The name is not quoted because it may be megabytes long.
            let names = NAMESPACES.map(|known| known.name).join(", ");
            ServiceError::invalid(field, "an unknown namespace", format!("one of {names}"))
        })
    }

    /// Checks that the readers of the namespace accept a value.
    pub(super) fn check(&self, value: &[u8]) -> Result<(), ServiceError> {
        let invalid = |found: &str| {
            let expected = match self.form {
                ValueForm::Object => "a JSON object",
                ValueForm::TritonObject => "a JSON object that sets no ir_override",
                ValueForm::Json => "JSON",
                ValueForm::Message => "a text or an encoded message",
            };
            let expected = format!("{expected} of 1 byte to 64 KiB, as `{}` reads", self.name);
            Err(ServiceError::invalid(FIELD, found, expected))
        };
        if value.is_empty() || value.len() > MAX_VALUE_BYTES {
            return invalid(&format!("{} bytes long", value.len()));
        }
        if matches!(self.form, ValueForm::Message) {
            // The fields of a message, whatever they mean.
            let is_readable = std::str::from_utf8(value).is_ok() || <()>::decode(value).is_ok();
            return if is_readable {
                Ok(())
            } else {
                invalid("neither")
            };
        }
        let text = std::str::from_utf8(value).ok();
        let json: Option<Value> = text.and_then(|text| serde_json::from_str(&standard(text)).ok());
        match (self.form, json) {
            (_, None) => invalid("no JSON"),
            (ValueForm::Object | ValueForm::TritonObject, Some(json)) if !json.is_object() => {
                invalid("JSON of another type")
            }
            (ValueForm::TritonObject, Some(json)) if names_file(&json) => {
                invalid("an object that sets ir_override")
            }
            _ => Ok(()),
        }
    }
}

/// Python writes numbers that JSON lacks, such as the time of a configuration that failed. Replaces them by `null`.
fn standard(text: &str) -> String {
    let mut standard = String::with_capacity(text.len());
    let (mut is_string, mut is_escaped) = (false, false);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let words = ["-Infinity", "Infinity", "NaN"];
        let mut words = words.iter().filter_map(|word| rest.strip_prefix(word));
        if let Some(after) = words.next().filter(|_| !is_string) {
            standard.push_str("null");
            rest = after;
            continue;
        }
        is_string ^= letter == '"' && !is_escaped;
        is_escaped = is_string && letter == '\\' && !is_escaped;
        standard.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    standard
}

fn names_file(json: &Value) -> bool {
    match json {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| (name == IR_OVERRIDE && !value.is_null()) || names_file(value)),
        Value::Array(values) => values.iter().any(names_file),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(namespace: &str, value: &[u8]) -> bool {
        check_decision_value(namespace, value).is_ok()
    }

    #[test]
    fn a_value_is_what_the_namespace_reads() {
        for name in ["space", "helion", "inductor", "kernel-tuner", "optuna"] {
            assert!(is_accepted(name, br#"{"num_warps": 4}"#), "{name}");
            for wrong in [&b"[4]"[..], b"{", b"", b"\xff", b"1Infinity"] {
                assert!(!is_accepted(name, wrong), "{name}");
            }
        }
        assert!(is_accepted("tvm", b"[[1], \"a\"]"));
    }

    #[test]
    fn a_file_of_triton_is_accepted_unless_it_names_code() {
        let file = br#"{"key": ["Infinity\" NaN"], "configs_timings": [[{"ir_override": null}, [Infinity, -Infinity, NaN]]]}"#;
        assert!(is_accepted("triton", file));
        let names_code = br#"{"configs_timings": [[{"ir_override": "/tmp/kernel.ttir"}, [1.0]]]}"#;
        assert!(!is_accepted("triton", names_code) && is_accepted("helion", names_code));
    }

    #[test]
    fn a_value_of_xla_is_a_text_or_a_message() {
        assert!(is_accepted(
            "xla",
            b"version: 3 results { device: \"sm_9.0\" }"
        ));
        assert!(is_accepted("xla", &[0x0a, 3, 0xff, 0xfe, 0xfd]));
        assert!(!is_accepted("xla", &[0x0a, 200, 0xff]));
    }
}
