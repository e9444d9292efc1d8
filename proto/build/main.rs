//! Compiles the `.proto` files with protox, so that no `protoc` is needed.

mod methods;

use std::{
    collections::HashSet,
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use protox::Compiler;
use tonic_prost_build::Builder;

use methods::PACKAGE;

const FILES: [&str; 7] = [
    "hlorank/v1/cost_model_service.proto",
    "hlorank/v1/model_service.proto",
    "hlorank/v1/model_admin_service.proto",
    "hlorank/v1/configuration.proto",
    "onnx/model.proto",
    "tpu_graphs/tuning.proto",
    "xla/hlo.proto",
];

/// Files that declare options, which only the build reads.
const OPTIONS: [&str; 2] = [methods::FILE, "google/protobuf/descriptor.proto"];

/// The file of the service whose messages may be large.
const LARGE: &str = "hlorank/v1/cost_model_service.proto";

/// Messages that files hold as JSON, and the lists of each that are empty if a file does not have them.
const JSON: [(&str, &[&str]); 5] = [
    ("LayoutConfig", &["nodes"]),
    ("NodeLayout", &["tensors"]),
    ("TensorLayout", &["minor_to_major"]),
    (
        "TileConfig",
        &["kernel_bounds", "output_bounds", "input_bounds"],
    ),
    ("FusionConfig", &["fused_nodes"]),
];

/// Messages that the command line prints as JSON, and the counts of each, whose names there have `configurations` in full.
const PRINTED: [(&str, &[&str]); 8] = [
    ("Confidence", &[]),
    ("DecisionEvidence", &[]),
    ("FeatureSet", &[]),
    ("LiveQuality", &["configs"]),
    ("ModelRejection", &[]),
    ("Reporter", &["measured_configs", "shared_configs"]),
    ("ReuseCounts", &["configs", "distinct_configs"]),
    ("Warning", &[]),
];

/// Message and name of each field that the server receives encoded, and decodes with limits.
type EncodedFields = HashSet<(String, String)>;

fn main() -> Result<(), Box<dyn Error>> {
    for folder in ["build", "hlorank", "onnx", "tpu_graphs", "xla"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    let compiler = compiler()?;
    let pool = compiler.descriptor_pool();
    let descriptors = without_options(compiler.file_descriptor_set());

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("methods.rs"), methods::table(&pool)?)?;
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    // The graph crate needs messages alone, and builds without a transport.
    let grpc = env::var_os("CARGO_FEATURE_GRPC").is_some();
    let mut config = tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .bytes(".");
    for (name, lists) in JSON {
        let path = format!(".{PACKAGE}.{name}");
        config = config
            .message_attribute(&path, "#[derive(serde::Serialize, serde::Deserialize)]")
            .message_attribute(&path, "#[serde(deny_unknown_fields)]");
        for list in lists {
            config = config.field_attribute(format!("{path}.{list}"), "#[serde(default)]");
        }
    }
    for (name, counts) in PRINTED {
        let path = format!(".{PACKAGE}.{name}");
        config = config.message_attribute(&path, "#[derive(serde::Serialize)]");
        for count in counts {
            let printed = count.replace("configs", "configurations");
            let rename = format!("#[serde(rename = {printed:?})]");
            config = config.field_attribute(format!("{path}.{count}"), rename);
        }
    }
    let failure = format!(".{PACKAGE}.MeasurementFailure");
    let wrong_result = format!("{failure}.MEASUREMENT_FAILURE_WRONG_RESULT");
    config = config
        .enum_attribute(&failure, "#[derive(serde::Deserialize)]")
        .enum_attribute(&failure, "#[serde(rename_all = \"snake_case\")]")
        .field_attribute(
            format!("{failure}.MEASUREMENT_FAILURE_UNSPECIFIED"),
            "#[serde(skip)]",
        )
        // Commands of `hlorank worker` print it as the options of other programs are written.
        .field_attribute(wrong_result, "#[serde(alias = \"wrong-result\")]");
    config.compile_fds(descriptors.clone())?;
    if grpc {
        let encoded = methods::encoded_fields(&pool);
        generate_received(descriptors, &encoded, &out.join("received"))?;
    }
    Ok(())
}

/// Returns a compiler that has read the files.
fn compiler() -> Result<Compiler, protox::Error> {
    let mut compiler = Compiler::new(["."])?;
    // Comments become the documentation of the generated code.
    compiler.include_source_info(true);
    compiler.include_imports(true);
    compiler.open_files(FILES)?;
    Ok(compiler)
}

/// Removes the files that declare options, so that neither the crate nor reflection has them. Values of options are
/// gone already, because prost's descriptors hold none.
fn without_options(mut descriptors: FileDescriptorSet) -> FileDescriptorSet {
    descriptors
        .file
        .retain(|file| !OPTIONS.contains(&file.name()));
    for file in &mut descriptors.file {
        file.dependency
            .retain(|import| !OPTIONS.contains(&import.as_str()));
    }
    descriptors
}

/// Generates the service of [`LARGE`] as the server sees it: its requests hold their encoded fields as bytes. All other
/// messages are those of the module `v1`.
fn generate_received(
    mut descriptors: FileDescriptorSet,
    encoded: &EncodedFields,
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    descriptors
        .file
        .retain(|file| file.package() == PACKAGE || file.name().starts_with("google/"));
    let mut config = tonic_prost_build::configure()
        .build_client(false)
        .bytes(".")
        .out_dir(out);
    for file in &mut descriptors.file {
        // Without their services, the other files of a package still define the types that the
        // requests hold.
        if file.name() != LARGE {
            file.service.clear();
        }
        if file.package() != PACKAGE {
            continue;
        }
        config = share_types(config, file, encoded);
        for message in &mut file.message_type {
            keep_fields_encoded(message, encoded);
        }
    }
    config.compile_fds(descriptors)?;
    Ok(())
}

/// Makes generated code use the types of the module `v1`, except for those with encoded fields.
fn share_types(
    mut config: Builder,
    file: &FileDescriptorProto,
    encoded: &EncodedFields,
) -> Builder {
    for name in shared_types(file, encoded) {
        config = config.extern_path(format!(".{PACKAGE}.{name}"), format!("crate::v1::{name}"));
    }
    config
}

/// Returns the names of the messages and enums that both modules share.
fn shared_types(file: &FileDescriptorProto, encoded: &EncodedFields) -> Vec<String> {
    let messages = file.message_type.iter().map(DescriptorProto::name);
    let shared = messages.filter(|name| !encoded.iter().any(|(message, _)| message == name));
    let enums = file.enum_type.iter().map(EnumDescriptorProto::name);
    shared.chain(enums).map(str::to_owned).collect()
}

/// Makes the encoded fields of a message bytes. Messages and bytes are encoded alike.
fn keep_fields_encoded(message: &mut DescriptorProto, encoded: &EncodedFields) {
    let name = message.name().to_owned();
    for field in &mut message.field {
        if encoded.contains(&(name.clone(), field.name().to_owned())) {
            field.set_type(Type::Bytes);
            field.type_name = None;
            // A message may be absent; so may these bytes.
            let is_single = field.label() == Label::Optional && field.oneof_index.is_none();
            field.proto3_optional = is_single.then_some(true);
        }
    }
}
