//! Each method is described once, by options in the `.proto` files.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::HashSet, fs, path::Path};

use hlorank_proto::{
    FILE_DESCRIPTOR_SET,
    methods::{METHODS, Method},
};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use protox::prost_reflect::DescriptorPool;

#[path = "../build/methods.rs"]
mod build_methods;

/// Compiles a service with one method, whose body is given.
fn service(name: &str, body: &str) -> DescriptorPool {
    let file = format!("{name}.proto");
    let text = format!(
        "syntax = \"proto3\"; package hlorank.v1; import \"hlorank/v1/method.proto\"; \
         message Empty {{}} \
         message Parcel {{ Empty content = 1 [(encoded) = true]; Empty label = 2; }} \
         service Toy {{ rpc Play(Empty) returns (Empty) {{ {body} }} }}"
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::write(folder.join(&file), text).unwrap();
    let mut compiler =
        protox::Compiler::new([folder, Path::new(env!("CARGO_MANIFEST_DIR"))]).unwrap();
    compiler.include_imports(true).open_file(file).unwrap();
    compiler.descriptor_pool()
}

#[test]
fn every_method_has_a_row() {
    let descriptors = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let files = descriptors
        .file
        .iter()
        .filter(|file| file.package() == build_methods::PACKAGE);
    let mut methods = 0;
    for file in files {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                let row = Method::at(&path).unwrap_or_else(|| panic!("no row for {path}"));
                assert_eq!(row.is_stream, method.client_streaming(), "{path}");
                methods += 1;
            }
        }
    }
    assert_eq!(methods, METHODS.len());
}

#[test]
fn a_method_with_its_options_has_a_row() {
    let body = "option (method) = {scope: SCOPE_ADMIN, class: CALL_CLASS_UNLIMITED};";
    let table = build_methods::table(&service("complete", body)).unwrap();
    assert_eq!(
        table,
        "[Method { service: \"hlorank.v1.Toy\", name: \"Play\", scope: Some(Scope::Admin), \
         class: CallClass::Unlimited, selects_model: false, changes: false, is_stream: false }]"
    );
}

#[test]
fn a_method_that_lacks_an_option_does_not_build() {
    for (name, body, lacks) in [
        ("bare", "", "method"),
        (
            "no_scope",
            "option (method) = {class: CALL_CLASS_SCORING};",
            "scope",
        ),
        (
            "no_class",
            "option (method) = {scope: SCOPE_READ};",
            "class",
        ),
        (
            "unspecified",
            "option (method) = {scope: SCOPE_UNSPECIFIED, class: CALL_CLASS_SCORING};",
            "scope",
        ),
    ] {
        let error = build_methods::table(&service(name, body))
            .unwrap_err()
            .to_string();
        let start = format!("the method hlorank.v1.Toy.Play lacks the option `{lacks}`");
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn fields_are_encoded_that_say_so() {
    let body = "option (method) = {scope: SCOPE_READ, class: CALL_CLASS_SCORING};";
    let encoded = build_methods::encoded_fields(&service("fields", body));
    let field = ("Parcel".to_owned(), "content".to_owned());
    assert_eq!(encoded, HashSet::from([field]));
}
