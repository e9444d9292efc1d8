use hlorank_server::check_decision_value;
use prost::Message as _;
use serde_json::Value;

use crate::{Target, mutate::mutate_bytes, reading::check_error};

/// The value of a decision, in every namespace. What is accepted is short, and what the namespace's own reader reads.
pub const DECISION_VALUE: Target = Target {
    name: "decision_value",
    mutate: mutate_bytes,
    read,
};

/// Maximum length of a value in bytes.
const MAX_BYTES: usize = 64 << 10;

/// The entry that Triton's values must not set.
const FILE: &str = "ir_override";

fn read(input: &[u8]) {
    let is_short = (1..=MAX_BYTES).contains(&input.len());
    let is_accepted = |namespace: &str| match check_decision_value(namespace, input) {
        Ok(()) => {
            assert!(is_short, "{} bytes in {namespace}", input.len());
            true
        }
        Err(error) => {
            check_error(&error);
            false
        }
    };
    let text = std::str::from_utf8(input);
    let is_message = text.is_ok() || <()>::decode(input).is_ok();
    assert_eq!(is_accepted("xla"), is_short && is_message, "xla");
    let (is_json, is_object) = (is_accepted("tvm"), is_accepted("space"));
    assert!(is_json || !is_object, "an object is JSON");
    for namespace in ["helion", "inductor", "kernel-tuner", "optuna"] {
        assert_eq!(is_accepted(namespace), is_object, "{namespace}");
    }
    let is_of_triton = is_accepted("triton");
    assert!(is_object || !is_of_triton, "Triton reads objects");
    // Python also writes numbers that this reader does not know.
    let Ok(json) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    assert_eq!(is_json, is_short, "JSON");
    assert_eq!(is_object, is_short && json.is_object(), "an object");
    assert_eq!(is_of_triton, is_object && !names_file(&json), "Triton");
}

/// Whether an object anywhere in a value names a file.
fn names_file(json: &Value) -> bool {
    let mut waiting = vec![json];
    while let Some(json) = waiting.pop() {
        match json {
            Value::Object(entries) if !entries.get(FILE).is_none_or(Value::is_null) => return true,
            Value::Object(entries) => waiting.extend(entries.values()),
            Value::Array(values) => waiting.extend(values),
            _ => {}
        }
    }
    false
}
