//! Compiles the `.proto` files with protox, so that no `protoc` is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

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
        .compile_fds(descriptors)?;
    Ok(())
}
