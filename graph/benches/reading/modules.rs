use std::{env, fs, path::Path};

use hlorank_proto::xla::{HloComputationProto, HloModuleProto};
use prost::Message as _;

/// Distance between the ids of two copies, larger than any id `computation << 32 | instruction`.
const ID_STRIDE: i64 = 1 << 44;
/// The module that is repeated, with 268 nodes.
const REPEATED: &str = "tests/data/hlo/cnn_train.cpu_after_opt.hlo_module.pb";
/// Number of copies that have about as many nodes as the large module.
const LARGE_COPIES: i64 = 120;

/// A serialized module to measure.
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Module {
    /// Returns a module whose computations are repeated, each copy with its own ids.
    pub(crate) fn growing(copies: i64) -> Self {
        let bytes = fs::read(repository(REPEATED)).expect("the fixture is part of the repository");
        let module = HloModuleProto::decode(bytes.as_slice()).expect("the fixture is sound");
        let copy = |copy: i64| {
            module
                .computations
                .iter()
                .map(move |one| shifted(one, copy * ID_STRIDE))
        };
        let computations = (0..copies).flat_map(copy).collect();
        let bytes = HloModuleProto {
            computations,
            ..module.clone()
        }
        .encode_to_vec();
        Self {
            name: format!("cnn_train x {copies}"),
            bytes,
        }
    }

    /// Returns the training step of a transformer of 96 layers, 32,206 nodes. If its file is absent, returns a repeated
    /// module of about the same size.
    pub(crate) fn large() -> Self {
        let name = "transformer96_train.before_opt";
        let root =
            env::var_os("HLORANK_SHARED").map_or_else(|| repository("../shared"), Into::into);
        match fs::read(root.join(format!("data/hlo/{name}.hlo_module.pb"))) {
            Ok(bytes) => Self {
                name: name.to_owned(),
                bytes,
            },
            Err(_) => Self::growing(LARGE_COPIES),
        }
    }
}

/// Returns a path relative to the root of the repository.
pub(crate) fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn shifted(computation: &HloComputationProto, shift: i64) -> HloComputationProto {
    let mut computation = computation.clone();
    computation.id += shift;
    computation.root_id += shift;
    for instruction in &mut computation.instructions {
        instruction.id += shift;
        instruction
            .operand_ids
            .iter_mut()
            .for_each(|id| *id += shift);
        instruction
            .called_computation_ids
            .iter_mut()
            .for_each(|id| *id += shift);
    }
    computation
}
