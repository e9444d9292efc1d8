use hlorank_graph::shortened;
use serde_json::{Map, Value};

use crate::model::Rejection;

/// Name of the manifest. An exporter writes it last: a version without one does not exist yet.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The fields of a manifest, by name. A field that is null is not set.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn parse(json: &[u8]) -> Result<Self, Rejection> {
        let fields = serde_json::from_slice(json).map(Self);
        fields.map_err(|error| {
            let detail = shortened(&error.to_string());
            let message = format!("{MANIFEST_FILE} cannot be read: {detail}");
            Rejection::new("MANIFEST_UNREADABLE", message)
        })
    }

    /// Returns what a field means. Refuses one that means nothing, or that is not set.
    pub(super) fn required<'a, T>(
        &'a self,
        field: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, Rejection> {
        let meaning = self.optional(field, expected, read)?;
        meaning.ok_or_else(|| self.refused(field, expected))
    }

    /// Returns what a field means, if it is set. Refuses one that means nothing.
    pub(super) fn optional<'a, T>(
        &'a self,
        field: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Rejection> {
        match self.0.get(field).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => match read(value) {
                None => Err(self.refused(field, expected)),
                meaning => Ok(meaning),
            },
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<String, Rejection> {
        self.required(field, "text", Value::as_str)
            .map(str::to_owned)
    }

    /// Refuses a field that only other models have.
    pub(super) fn absent(&self, field: &str, expected: &str) -> Result<(), Rejection> {
        self.optional(field, expected, |_| None::<()>).map(drop)
    }

    /// Says what a field is, and what was expected.
    pub(super) fn refused(&self, field: &str, expected: &str) -> Rejection {
        let found = match self.0.get(field) {
            None | Some(Value::Null) => "not set".to_owned(),
            Some(Value::String(text)) => shortened(text),
            Some(value) => shortened(&value.to_string()),
        };
        let message = format!("{MANIFEST_FILE}: `{field}` is `{found}`, expected {expected}");
        Rejection::new("MANIFEST_INVALID", message)
    }
}
