//! Compiles the `.proto` files with protox, so that no `protoc` is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;
use prost_types::{FieldDescriptorProto, FileDescriptorSet, field_descriptor_proto::Type};

const FILES: [&str; 8] = [
    "hlorank/v1/cost_model_service.proto",
    "hlorank/v1/model_service.proto",
    "hlorank/v1/model_admin_service.proto",
    "hlorank/v1/configuration.proto",
    "hlorank/v1/trace.proto",
    "onnx/model.proto",
    "tpu_graphs/tuning.proto",
    "xla/hlo.proto",
];

/// The package of the services.
const PACKAGE: &str = "hlorank.v1";

/// The file of the service whose messages may be large.
const COST_MODEL: &str = "hlorank/v1/cost_model_service.proto";

/// Fields of its requests that hold most of the bytes. The server receives them encoded, and decodes them with limits.
const ENCODED_FIELDS: [(&str, &str); 10] = [
    ("Adapt", "batch"),
    ("RankConfigsRequest", "graph"),
    ("RankConfigsRequest", "batch"),
    ("RankConfigsStart", "graph"),
    ("RankConfigsStreamRequest", "batch"),
    ("SuggestConfigsRequest", "graph"),
    ("SuggestConfigsRequest", "batch"),
    ("PutGraphRequest", "graph"),
    ("ReportMeasurementsRequest", "graph"),
    ("ReportMeasurementsRequest", "batch"),
];

fn main() -> Result<(), Box<dyn Error>> {
    for folder in ["hlorank", "onnx", "tpu_graphs", "xla"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    let grpc = env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .bytes(".")
        .compile_fds(descriptors.clone())?;
    if grpc {
        generate_received(descriptors, out.join("received"))?;
    }
    Ok(())
}

/// Generates the cost model service as the server sees it: its requests hold [`ENCODED_FIELDS`] as bytes. All other
/// messages are those of the module `v1`.
fn generate_received(
    mut descriptors: FileDescriptorSet,
    out: PathBuf,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(&out)?;
    descriptors
        .file
        .retain(|file| file.package() == PACKAGE || file.name().starts_with("google/"));
    let mut config = tonic_prost_build::configure()
        .build_client(false)
        .bytes(".")
        .out_dir(out);
    for file in &mut descriptors.file {
        if file.name() != COST_MODEL {
            file.service.clear();
        }
        for message in file
            .message_type
            .iter_mut()
            .filter(|_| file.package.as_deref() == Some(PACKAGE))
        {
            let name = message.name().to_owned();
            if !ENCODED_FIELDS.iter().any(|(encoded, _)| *encoded == name) {
                config =
                    config.extern_path(format!(".{PACKAGE}.{name}"), format!("crate::v1::{name}"));
            }
            let is_encoded =
                |field: &&mut FieldDescriptorProto| ENCODED_FIELDS.contains(&(&name, field.name()));
            message
                .field
                .iter_mut()
                .filter(is_encoded)
                .for_each(keep_encoded);
        }
        for each in file
            .enum_type
            .iter()
            .filter(|_| file.package.as_deref() == Some(PACKAGE))
        {
            let name = each.name();
            config = config.extern_path(format!(".{PACKAGE}.{name}"), format!("crate::v1::{name}"));
        }
    }
    config.compile_fds(descriptors)?;
    Ok(())
}

/// Makes a field of messages one of bytes. Both are encoded alike.
fn keep_encoded(field: &mut FieldDescriptorProto) {
    field.set_type(Type::Bytes);
    field.type_name = None;
    // A message may be absent; so may these bytes.
    field.proto3_optional = field.oneof_index.is_none().then_some(true);
}
