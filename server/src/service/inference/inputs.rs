//! The tensors that calls and answers have, and their description for clients.

use hlorank_graph::Task;
use hlorank_proto::inference::{ModelMetadataResponse, TensorMetadata};

use crate::model::Manifest;

/// Name, type and shape of a tensor. A size that varies is -1.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) name: &'static str,
    pub(super) datatype: &'static str,
    pub(super) shape: &'static [i64],
}

/// The inputs that can be the graph of a call. Their names are those of the fields of `hlorank.v1.Graph`.
pub(super) const GRAPHS: [Described; 3] = [
    described("graph_hash", "UINT8", &[32]),
    described("hlo_module", "BYTES", &[1]),
    described("hlo_text", "BYTES", &[1]),
];

/// The inputs with configurations: their number, that of slots, bytes of bits or bounds, and values.
pub(super) const CONFIGURATIONS: [(Task, Described); 5] = [
    (Task::Layout, described("layouts", "INT8", &[-1, -1, 18])),
    (Task::Fusion, described("fused", "UINT8", &[-1, -1])),
    (Task::Tile, described("kernel_bounds", "INT32", &[-1, -1])),
    (Task::Tile, described("output_bounds", "INT32", &[-1, -1])),
    (Task::Tile, described("input_bounds", "INT32", &[-1, -1])),
];

/// The outputs of every model.
pub(super) const OUTPUTS: [Described; 3] = [
    described("scores", "FP32", &[-1]),
    described("ranking", "UINT32", &[-1]),
    described("graph_hash", "UINT8", &[32]),
];

const fn described(name: &'static str, datatype: &'static str, shape: &'static [i64]) -> Described {
    Described {
        name,
        datatype,
        shape,
    }
}

/// Describes the tensors of a model.
pub(super) fn metadata(manifest: &Manifest) -> ModelMetadataResponse {
    let of_task = CONFIGURATIONS
        .iter()
        .filter(|(task, _)| *task == manifest.task());
    let inputs = GRAPHS.iter().chain(of_task.map(|(_, input)| input));
    ModelMetadataResponse {
        name: manifest.name.clone(),
        versions: vec![manifest.version.to_string()],
        platform: "hlorank_onnx".to_owned(),
        inputs: inputs.map(TensorMetadata::from).collect(),
        outputs: OUTPUTS.iter().map(TensorMetadata::from).collect(),
    }
}

impl From<&Described> for TensorMetadata {
    fn from(tensor: &Described) -> Self {
        Self {
            name: tensor.name.to_owned(),
            datatype: tensor.datatype.to_owned(),
            shape: tensor.shape.to_vec(),
        }
    }
}
