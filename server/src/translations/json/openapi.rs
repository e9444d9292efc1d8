//! Describes the methods that take JSON, from the descriptors of the `.proto` files and their comments.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::request::JsonMethod;

/// The services that are described.
const SERVICES: [&str; 2] = ["hlorank.v1.CostModelService", "hlorank.v1.ModelService"];

/// Returns the description as `OpenAPI` 3.1.
pub(crate) fn openapi() -> Value {
    let methods = SERVICES.into_iter().flat_map(JsonMethod::all_in_service);
    let methods: Vec<JsonMethod> = methods.collect();
    let paths: Map<String, Value> = methods.iter().map(path).collect();
    let mut schemas = Schemas::default();
    for JsonMethod { method, .. } in &methods {
        schemas.add(&method.input());
        schemas.add(&method.output());
    }
    schemas.done.insert("Error".to_owned(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "hlorank",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Ranks compiler configurations by predicted run time. Messages are those of gRPC in proto3's JSON form.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas.done,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{}, { "token": [] }],
    })
}

fn path(JsonMethod { method, .. }: &JsonMethod) -> (String, Value) {
    let content = |schema: String| json!({ "application/json": { "schema": { "$ref": schema } } });
    let service = method.parent_service();
    let described = json!({ "post": {
        "operationId": method.name(),
        "tags": [service.name()],
        "description": comment(&method.parent_file(), method.path()),
        "requestBody": { "required": true, "content": content(reference(method.input().full_name())) },
        "responses": {
            "200": { "description": "The answer", "content": content(reference(method.output().full_name())) },
            "default": { "description": "An error", "content": content(reference("Error")) },
        },
    } });
    let path = format!("/{}/{}", service.full_name(), method.name());
    (path, described)
}

fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

/// The schemas of messages and of all that they contain.
#[derive(Default)]
struct Schemas {
    done: BTreeMap<String, Value>,
    begun: BTreeSet<String>,
}

impl Schemas {
    fn add(&mut self, message: &MessageDescriptor) {
        let name = message.full_name().to_owned();
        // A message that contains itself would be described endlessly, so it counts as soon as it
        // begins.
        if well_known(&name).is_some() || !self.begun.insert(name.clone()) {
            return;
        }
        let fields = message.fields();
        let properties: Map<_, _> = fields.map(|field| self.field(&field)).collect();
        let schema = json!({
            "type": "object",
            "description": comment(&message.parent_file(), message.path()),
            "properties": properties,
            // A field that is misspelled is refused, not ignored.
            "additionalProperties": false,
        });
        self.done.insert(name, schema);
    }

    fn add_enum(&mut self, described: &EnumDescriptor) {
        let values = described.values();
        let values: Vec<String> = values.map(|value| value.name().to_owned()).collect();
        let schema = json!({
            "type": "string",
            "description": comment(&described.parent_file(), described.path()),
            "enum": values,
        });
        self.done.insert(described.full_name().to_owned(), schema);
    }

    /// Returns the name and the schema of a field.
    fn field(&mut self, field: &FieldDescriptor) -> (String, Value) {
        let mut schema = match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                let kind = &entry.map_entry_value_field().kind();
                json!({ "type": "object", "additionalProperties": self.value(kind) })
            }
            kind if field.is_list() => json!({ "type": "array", "items": self.value(&kind) }),
            kind => self.value(&kind),
        };
        if let Some(text) = description(field) {
            schema["description"] = text.into();
        }
        (field.json_name().to_owned(), schema)
    }

    fn value(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::String => json!({ "type": "string" }),
            Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                json!({ "type": "integer", "format": "int32" })
            }
            Kind::Uint32 | Kind::Fixed32 => {
                json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
            }
            // Answers have these as texts, since JSON's numbers are often read as doubles.
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64 => {
                json!({ "type": ["string", "integer"], "pattern": "^-?[0-9]+$" })
            }
            // JSON has no numbers for these three.
            Kind::Float | Kind::Double => {
                json!({ "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }] })
            }
            Kind::Enum(described) => {
                self.add_enum(described);
                json!({ "$ref": reference(described.full_name()) })
            }
            Kind::Message(message) => well_known(message.full_name()).unwrap_or_else(|| {
                self.add(message);
                json!({ "$ref": reference(message.full_name()) })
            }),
        }
    }
}

fn description(field: &FieldDescriptor) -> Option<String> {
    let mut described = comment(&field.parent_file(), field.path());
    // JSON has no choice of fields: the schema allows all of them, and the description says it.
    if let Some(choice) = field.containing_oneof() {
        described.insert_str(0, &format!("One of `{}`. ", choice.name()));
        described.truncate(described.trim_end().len());
    }
    Some(described).filter(|text| !text.is_empty())
}

/// Returns the schema of a message that has a form of its own in JSON.
fn well_known(name: &str) -> Option<Value> {
    match name {
        "google.protobuf.Duration" => Some(
            json!({ "type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?s$", "examples": ["0.25s"] }),
        ),
        "google.protobuf.Timestamp" => Some(json!({ "type": "string", "format": "date-time" })),
        _ => None,
    }
}

/// Returns the comment above a definition.
fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let location =
        info.and_then(|info| info.location.iter().find(|location| location.path == path));
    let lines = location.map_or("", |location| location.leading_comments());
    let lines: Vec<&str> = lines.lines().map(str::trim).collect();
    lines.join(" ").trim().to_owned()
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "An error. docs/errors.md explains the reasons.",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "description": "The code of gRPC in lower case.", "examples": ["invalid_argument"] },
            "message": { "type": "string" },
            "reason": { "type": "string", "description": "A stable identifier.", "examples": ["GRAPH_NOT_CACHED"] },
            "fields": { "type": "array", "items": { "type": "string" }, "description": "The fields to blame." },
            "retryAfterSeconds": { "type": "number", "description": "Set if a retry can help." },
            "details": {
                "type": "array",
                "description": "The messages of google.rpc.Status, as the Connect protocol sends them.",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": { "type": "string" },
                        "value": { "type": "string", "contentEncoding": "base64" },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_a_schema_every_field_a_description_and_no_stream_a_path() {
        let document = openapi();
        let paths = document["paths"].as_object().unwrap();
        assert!(!paths.keys().any(|path| path.ends_with("Stream")));
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let referred = text
            .split("#/components/schemas/")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        for name in referred {
            assert!(schemas.contains_key(name), "{name}");
        }
        let fields = schemas["hlorank.v1.RankConfigsRequest"]["properties"]
            .as_object()
            .unwrap();
        assert!(fields.contains_key("topK"));
        for (name, field) in fields {
            assert!(
                field["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{name}"
            );
        }
    }
}
