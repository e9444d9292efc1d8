use hlorank_tests::prelude::*;

use crate::json_calls::curl::call;

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
            for (name, value) in value
                .as_object()
                .unwrap_or_else(|| panic!("{place}: {value}"))
            {
                let property = schema["properties"]
                    .get(name)
                    .unwrap_or(&schema["additionalProperties"]);
                assert!(property.is_object(), "{place}: {name} is not described");
                check(value, property, document, &format!("{place}.{name}"));
            }
        }
        Some("array") => {
            let items = value
                .as_array()
                .unwrap_or_else(|| panic!("{place}: {value}"));
            for item in items {
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
    let text = std::fs::read_to_string(hlorank_tests::fixture("hlo/mlp_train.before_opt.hlo.txt"))
        .unwrap();
    let put =
        serde_json::json!({ "graph": { "hloText": text, "task": "TASK_LAYOUT" } }).to_string();
    for (method, json) in [
        ("ModelService/ListModels", "{}"),
        ("CostModelService/PutGraph", &*put),
        ("CostModelService/RankConfigs", "{}"),
    ] {
        let answered = call(server.endpoint(), method, json).await;
        let responses = &document["paths"][format!("/hlorank.v1.{method}")]["post"]["responses"];
        let response = if answered.status == 200 {
            &responses["200"]
        } else {
            &responses["default"]
        };
        check(
            &answered.json(),
            &response["content"]["application/json"]["schema"],
            &document,
            method,
        );
    }
}
