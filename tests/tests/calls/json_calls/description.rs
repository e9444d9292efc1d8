use hlorank_tests::prelude::*;

use crate::json_calls::curl::{LIST, PUT, RANK, call};

/// Asserts that a value has the form that a schema describes.
fn check(value: &Value, schema: &Value, document: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let referred = document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{reference}"));
        return check(value, referred, document, place);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = value.as_object();
            for (name, value) in fields.unwrap_or_else(|| panic!("{place}: {value}")) {
                let property = schema["properties"]
                    .get(name)
                    .unwrap_or(&schema["additionalProperties"]);
                assert!(property.is_object(), "{place}: {name} is not described");
                check(value, property, document, &format!("{place}.{name}"));
            }
        }
        Some("array") => {
            let items = value.as_array();
            for item in items.unwrap_or_else(|| panic!("{place}: {value}")) {
                check(item, &schema["items"], document, place);
            }
        }
        Some("string") => assert!(value.is_string(), "{place}: {value}"),
        Some("integer") => assert!(value.is_i64() || value.is_u64(), "{place}: {value}"),
        Some("boolean") => assert!(value.is_boolean(), "{place}: {value}"),
        _ => assert!(
            schema["anyOf"].is_array() || schema["type"].is_array(),
            "{place}: {schema}"
        ),
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{place}: {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_errors_are_as_the_description_says() {
    let server = TestServer::start().await;
    let (status, document) = http_get(server.metrics_address(), "/openapi.json").await;
    assert_eq!(status, 200);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let text = fs::read_to_string(fixture("hlo/mlp_train.before_opt.hlo.txt")).unwrap();
    let put = json!({ "graph": { "hloText": text, "task": "TASK_LAYOUT" } }).to_string();
    for (method, json, status) in [(LIST, "{}", 200), (PUT, &*put, 200), (RANK, "{}", 400)] {
        let answered = call(server.endpoint(), method, json).await;
        assert_eq!(answered.status, status, "{method}: {}", answered.body);
        let described = if status == 200 { "200" } else { "default" };
        let post = &document["paths"][format!("/hlorank.v1.{method}")]["post"];
        let schema = &post["responses"][described]["content"]["application/json"]["schema"];
        check(&answered.json(), schema, &document, method);
    }
}
