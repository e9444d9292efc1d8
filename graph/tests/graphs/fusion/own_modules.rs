//! A kernel has the features that the featurizer gives for it as a module of its own.

use std::{collections::HashMap, fs};

use hlorank_graph::{
    FusionProgram, Graph, HloModule, Kernel, KernelLimits, Limits, SegmentedGraph, Task,
};
use hlorank_proto::xla::{HloComputationProto, HloInstructionProto, HloModuleProto};
use prost::Message as _;

use crate::fusion::fixtures;

const CONFIGURATIONS: u64 = 24;

#[test]
fn kernels_have_the_features_of_modules_of_their_own() {
    let (mut checked, mut distinct) = (0, HashMap::new());
    for path in fixtures("pb") {
        let bytes = fs::read(&path).unwrap();
        let program = Prepared::read(&bytes);
        for seed in 0..CONFIGURATIONS {
            let fused = program.draw(seed);
            let Ok(kernels) = program.fusion.kernels(&fused, &KernelLimits::default()) else {
                continue;
            };
            check_covers(&program, &kernels);
            for kernel in &kernels {
                let segment = kernel.segment(&program.graph);
                checked += 1;
                if distinct.contains_key(&segment.digest) {
                    continue;
                }
                assert_eq!(segment.len(), kernel.len());
                assert_eq!(
                    featurized(&program.own_module(kernel)),
                    segment,
                    "{} {kernel:?}",
                    path.display()
                );
                distinct.insert(segment.digest, kernel.len());
            }
        }
    }
    let largest = distinct.values().max();
    println!(
        "{checked} kernels, {} of them distinct, the largest of {largest:?} nodes",
        distinct.len()
    );
    assert!(
        checked > 10_000 && distinct.len() > 1_000,
        "{checked} kernels, {} distinct",
        distinct.len()
    );
}

/// Every value that a kernel reads is written by another kernel or takes no time.
fn check_covers(program: &Prepared, kernels: &[Kernel]) {
    const FREE: [&str; 4] = ["constant", "get-tuple-element", "parameter", "tuple"];
    for input in kernels.iter().flat_map(|kernel| &kernel.inputs) {
        let written = kernels
            .binary_search_by_key(input, |kernel| kernel.root)
            .is_ok();
        assert!(
            written || FREE.contains(&program.instruction(*input).opcode.as_str()),
            "nothing writes {input}"
        );
    }
}

fn featurized(module: &HloModuleProto) -> hlorank_graph::Segment {
    let bytes = module.encode_to_vec();
    let module = HloModule::read(&bytes, &Limits::default()).unwrap();
    let graph = module.into_graph(Task::Tile, Vec::new()).unwrap();
    SegmentedGraph::cut(&graph, usize::MAX).segments.remove(0)
}

struct Prepared {
    proto: HloModuleProto,
    fusion: FusionProgram,
    graph: Graph,
}

impl Prepared {
    fn read(bytes: &[u8]) -> Self {
        let module = HloModule::read(bytes, &Limits::default()).unwrap();
        let fusion = FusionProgram::new(&module).unwrap();
        let graph = module.into_graph(Task::Tile, Vec::new()).unwrap();
        Self {
            proto: HloModuleProto::decode(bytes).unwrap(),
            fusion,
            graph,
        }
    }

    /// Random bits, of which more are set the larger the seed.
    fn draw(&self, seed: u64) -> Vec<u8> {
        let mut state = seed + 1;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let slots = self.fusion.slots().len();
        let mut bits = vec![0; slots.div_ceil(8)];
        (0..slots)
            .filter(|_| next() % CONFIGURATIONS <= seed)
            .for_each(|slot| bits[slot / 8] |= 1 << (slot % 8));
        bits
    }

    fn instructions(&self) -> impl Iterator<Item = &HloInstructionProto> {
        self.proto
            .computations
            .iter()
            .flat_map(|computation| &computation.instructions)
    }

    fn instruction(&self, node: u32) -> &HloInstructionProto {
        self.instructions().nth(node as usize).unwrap()
    }

    /// A kernel written as a module: what it calls, then parameters and the body as the entry computation.
    fn own_module(&self, kernel: &Kernel) -> HloModuleProto {
        let called = kernel
            .called
            .iter()
            .map(|nodes| self.computation_at(nodes.start).clone());
        let parameters = (0..)
            .zip(&kernel.inputs)
            .map(|(number, &input)| self.parameter(input, number));
        let body = kernel
            .body
            .iter()
            .map(|&node| self.instruction(node).clone());
        let entry = HloComputationProto {
            id: i64::MAX,
            root_id: self.instruction(kernel.root).id,
            instructions: parameters.chain(body).collect(),
            ..HloComputationProto::default()
        };
        HloModuleProto {
            computations: called.chain([entry]).collect(),
            ..HloModuleProto::default()
        }
    }

    fn computation_at(&self, node: u32) -> &HloComputationProto {
        let mut first = 0;
        let mut starts = self.proto.computations.iter().map(|computation| {
            let start = first;
            first += computation.instructions.len();
            (start, computation)
        });
        starts.find(|(start, _)| *start == node as usize).unwrap().1
    }

    fn parameter(&self, input: u32, number: i64) -> HloInstructionProto {
        let HloInstructionProto { id, shape, .. } = self.instruction(input).clone();
        HloInstructionProto {
            id,
            shape,
            opcode: "parameter".to_owned(),
            parameter_number: number,
            ..HloInstructionProto::default()
        }
    }
}
