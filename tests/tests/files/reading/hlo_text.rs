//! HLO text yields the same graph as the protobuf of the module, value for value.

use hlorank_graph::Graph;
use hlorank_proto::v1::ConfigurableNode;
use hlorank_tests::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// A module as text and as protobuf.
struct Pair {
    name: String,
    text: String,
    proto: Vec<u8>,
}

impl Pair {
    fn read(folder: &Path, name: String) -> Self {
        let text = fs::read_to_string(folder.join(format!("{name}.hlo.txt"))).unwrap();
        let proto = fs::read(folder.join(format!("{name}.hlo_module.pb"))).unwrap();
        Self { name, text, proto }
    }

    /// Reads all modules that exist as text. The computations of the protobuf are put in the order of the text, because
    /// XLA prints them in another order than it serializes them.
    fn all() -> Vec<Self> {
        let folders = [fixture(HLO_FIXTURES), fixture("hlo_text")];
        let pairs: Vec<Self> = folders
            .iter()
            .flat_map(|folder| {
                texts(folder)
                    .into_iter()
                    .map(|name| Self::read(folder, name))
            })
            .map(Self::in_one_order)
            .collect();
        assert_eq!(pairs.len(), 27);
        pairs
    }

    fn in_one_order(mut self) -> Self {
        let mut module = HloModuleProto::decode(self.proto.as_slice()).unwrap();
        let positions: HashMap<&str, usize> = computations(&self.text).zip(0..).collect();
        // The computations of `hlo_text` are nested in others and in order.
        if module
            .computations
            .iter()
            .all(|computation| positions.contains_key(computation.name.as_str()))
        {
            assert_eq!(positions.len(), module.computations.len(), "{}", self.name);
            let position = |computation: &HloComputationProto| positions[computation.name.as_str()];
            module.computations.sort_by_key(position);
            self.proto = module.encode_to_vec();
        }
        self
    }

    fn modules(&self) -> [HloModule<'_>; 2] {
        let limits = Limits::default();
        [
            HloModule::read_text(&self.text, &limits),
            HloModule::read(&self.proto, &limits),
        ]
        .map(|module| module.unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }
}

/// Returns the names of the computations of a text.
fn computations(text: &str) -> impl Iterator<Item = &str> {
    let heads = text
        .lines()
        .filter(|line| line.ends_with('{') && !line.starts_with([' ', '/']));
    heads.map(|head| {
        let head = head.strip_prefix("ENTRY ").unwrap_or(head);
        head.trim_start_matches('%').split(' ').next().unwrap()
    })
}

fn layout_graph(module: HloModule<'_>) -> Graph {
    let configurable = module.arrays.default_configurable();
    module.into_graph(Task::Layout, configurable).unwrap()
}

#[test]
fn opcodes_features_and_edges_are_those_of_the_protobuf() {
    for pair in Pair::all() {
        let [text, proto] = pair.modules();
        assert_eq!(text.arrays.opcodes, proto.arrays.opcodes, "{}", pair.name);
        let [ours, theirs] = [&text, &proto].map(|module| module.arrays.features.chunks(FEATURES));
        for ((node, ours), theirs) in (0..).zip(ours).zip(theirs) {
            assert_eq!(ours, theirs, "{}: {:?}", pair.name, text.describe(node));
        }
        assert_eq!(text.arrays, proto.arrays, "{}", pair.name);
        assert_eq!(text.node_splits, proto.node_splits, "{}", pair.name);
        assert_eq!(text.unknown_opcodes, proto.unknown_opcodes, "{}", pair.name);
    }
}

#[test]
fn configurable_nodes_and_hashes_are_those_of_the_protobuf() {
    for pair in Pair::all() {
        let [text, proto] = pair.modules().map(layout_graph);
        assert_eq!(text.configurable(), proto.configurable(), "{}", pair.name);
        assert_eq!(text.hash(), proto.hash(), "{}", pair.name);
    }
}

#[test]
fn a_module_before_optimisation_has_its_computations_in_one_order() {
    let folder = fixture(HLO_FIXTURES);
    for name in texts(&folder)
        .into_iter()
        .filter(|name| name.ends_with("before_opt"))
    {
        let [text, proto] = Pair::read(&folder, name)
            .modules()
            .map(|module| layout_graph(module).hash());
        assert_eq!(text, proto);
    }
}

#[test]
fn nodes_are_described_alike() {
    for pair in Pair::all() {
        let [text, proto] = pair.modules();
        for node in 0..u32::try_from(text.len()).unwrap() {
            let [ours, theirs] = [&text, &proto].map(|module| module.describe(node).unwrap());
            // XLA makes names unique when it reads, so the names in the files differ.
            assert_eq!(ours.opcode, theirs.opcode, "{}: {ours:?}", pair.name);
            assert_eq!(
                ours.dimensions, theirs.dimensions,
                "{}: {ours:?}",
                pair.name
            );
            assert_eq!(
                ours.tensor_ranks, theirs.tensor_ranks,
                "{}: {ours:?}",
                pair.name
            );
        }
        assert!(text.describe(u32::try_from(text.len()).unwrap()).is_none());
    }
}

#[test]
fn elements_that_nobody_uses_are_nodes_only_if_they_are_printed() {
    let folder = fixture("hlo_text");
    let nodes = |kind: &str| {
        let names = texts(&folder)
            .into_iter()
            .filter(|name| name.ends_with(kind));
        let counts = names.map(|name| {
            let pair = Pair::read(&folder, name.clone());
            let [text, _] = pair.modules();
            (name.replace(kind, ""), text.len())
        });
        counts.collect::<HashMap<String, usize>>()
    };
    let (compact, full) = (nodes(".compact"), nodes(".full"));
    assert_eq!((compact.len(), full.len()), (8, 8));
    for (name, nodes) in &compact {
        assert!(
            *nodes <= full[name],
            "{name}: {nodes} nodes, and {} when all are printed",
            full[name]
        );
    }
    assert!(compact.iter().any(|(name, nodes)| *nodes < full[name]));
}

#[test]
fn instructions_that_the_text_implies_have_the_names_of_xla() {
    let text = "HloModule m\n\nENTRY e {\n  t = (f32[2], (s32[], f32[3])) parameter(0)\n  \
                n = f32[3] add(t#1#1, f32[3] broadcast(f32[] constant(1)))\n  \
                ROOT c = compare(n, n), direction=LT\n}\n";
    let module = HloModule::read_text(text, &Limits::default()).unwrap();
    let nodes = (0..).map_while(|node| module.describe(node));
    let nodes: Vec<_> = nodes
        .map(|node| (node.name, node.opcode, node.dimensions))
        .collect();
    let expected = [
        ("t", "parameter", vec![]),
        ("t_1", "get-tuple-element", vec![]),
        ("t_1_1", "get-tuple-element", vec![3]),
        ("constant.anon", "constant", vec![]),
        ("broadcast.anon", "broadcast", vec![3]),
        ("n", "add", vec![3]),
        ("c", "compare", vec![3]),
    ];
    assert_eq!(
        nodes,
        expected.map(|(name, opcode, shape)| (name.to_owned(), opcode.to_owned(), shape))
    );
}

#[test]
fn a_shape_that_the_text_leaves_out_is_the_one_that_it_may_name() {
    let graph = |instruction: &str| {
        let text = format!(
            "HloModule m\n\nENTRY e {{\n  u = f32[?,4] parameter(0)\n  x = f32[3,2,3] parameter(1)\n  \
                            y = f32[3,5] parameter(2)\n  t = (f32[3,5], f32[3]) parameter(3)\n  \
                            ROOT r = {instruction}\n}}\n"
        );
        HloModule::read_text(&text, &Limits::default())
            .unwrap()
            .arrays
    };
    for (shape, instruction) in [
        ("f32[?,4]", "concatenate(u, u), dimensions={0}"),
        ("f32[6,5]", "concatenate(y, y), dimensions={0}"),
        // The last one counts of an attribute that is given twice.
        (
            "f32[2,3,5]",
            "dot(x, y), lhs_contracting_dims={2}, lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        ),
        ("f32[3]", "get-tuple-element(t), index=0, index=1"),
        // An operand follows an instruction without attributes.
        ("f32[3,2,3,3,5]", "add(dot(x, y), dot(x, y))"),
        (
            "f32[3,2,3,3,5]",
            "add(dot(x, y), f32[3,2,3,3,5] broadcast(f32[] constant(1)))",
        ),
    ] {
        let [named, left_out] = [format!("{shape} {instruction}"), instruction.to_owned()];
        assert_eq!(graph(&named), graph(&left_out), "{instruction}");
    }
}

#[test]
fn a_module_without_its_first_line_is_the_same_graph() {
    let body = "f {\n  ROOT a = f32[8] parameter(0)\n}\n\ng {\n  p = f32[8] parameter(0)\n  \
                ROOT c = f32[8] call(p), to_apply=f\n}\n";
    let whole = format!("HloModule m\n\n{}", body.replace("g {", "ENTRY g {"));
    let [with, without] =
        [whole.as_str(), body].map(|text| HloModule::read_text(text, &Limits::default()).unwrap());
    assert_eq!(with.arrays, without.arrays);
}

#[test]
fn names_and_opcodes_are_reported_as_the_text_has_them() {
    let text = "HloModule m\n\nENTRY e {\n  %p.1 = f32[2,3]{1,0} parameter(0)\n  \
                ROOT dot.2 = f32[2,2] dot(%p.1, p.1), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n";
    let module = HloModule::read_text(text, &Limits::default()).unwrap();
    let node = module.describe(1).unwrap();
    assert_eq!((node.name.as_str(), node.opcode.as_str()), ("dot.2", "dot"));
    assert_eq!(
        (node.dimensions, node.tensor_ranks),
        (vec![2, 2], vec![2, 2, 2])
    );
}

/// Returns a text of products, each of the last one and of a much earlier one.
fn products(nodes: usize) -> String {
    let mut lines =
        vec!["HloModule m\n\nENTRY e {\n  p.0 = f32[8,8]{1,0} parameter(0)\n".to_owned()];
    lines.extend((1..nodes).map(|node| {
        let (last, other) = (node - 1, node / 2);
        format!("  p.{node} = f32[8,8]{{1,0}} multiply(p.{last}, p.{other}), metadata={{op_name=\"f\"}}\n")
    }));
    lines.concat() + "}\n"
}

/// Returns the time that this thread has used a processor, whatever else runs.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a thread's time is positive")
}

#[test]
fn reading_takes_time_in_proportion_to_the_text() {
    let [small, large] = [5_000, 80_000].map(|nodes| {
        let text = products(nodes);
        let read = || {
            HloModule::read_text(&text, &Limits::default())
                .unwrap()
                .len()
        };
        let times = (0..5).map(|_| {
            let start = processor_time();
            assert_eq!(read(), nodes);
            processor_time().saturating_sub(start)
        });
        times.min().unwrap()
    });
    // Sixteen times the text may take four times longer than linear, for caches.
    assert!(
        large < small * 64,
        "{small:?} for 5,000 nodes, {large:?} for 80,000"
    );
}

/// Returns one layout for each of `choices`, which is repeated over the nodes: 0 is the compiler's default, 1 the ascending
/// order of the output, and 2 that of every tensor.
fn orders(nodes: &[ConfigurableNode], choices: &[Vec<usize>]) -> Configurations {
    let mut builder = LayoutBatchBuilder::new(nodes.len(), Limits::default());
    for choices in choices {
        let entry = |(node, choice): (&ConfigurableNode, &usize)| {
            let ranks = &node.tensor_ranks[..[0, 1, node.tensor_ranks.len()][*choice]];
            let orders = ranks
                .iter()
                .map(|rank| (0..).take(*rank as usize).collect::<Vec<i32>>());
            LayoutEntry::from_tensors(orders).unwrap()
        };
        builder
            .push(
                &nodes
                    .iter()
                    .zip(choices.iter().cycle())
                    .map(entry)
                    .collect::<Vec<_>>(),
            )
            .unwrap();
    }
    Configurations::Layout(builder.build().unwrap())
}

#[tokio::test]
async fn a_graph_that_comes_as_text_is_ranked_as_its_module() {
    let pair = Pair::read(&fixture(HLO_FIXTURES), "mlp_train.before_opt".to_owned());
    // Each has its own server, so that neither finds the other's embeddings in the cache.
    let mut answers = Vec::new();
    for graph in [
        GraphHandle::hlo_text(pair.text.clone(), Task::Layout, vec![]),
        GraphHandle::hlo_module(pair.proto.clone(), Task::Layout, vec![]),
    ] {
        let server = TestServer::start().await;
        let client = server.client().await;
        let cached = client.put_graph(&graph).await.unwrap();
        let layouts = orders(
            &cached.configurable_nodes,
            &[vec![0], vec![0, 1], vec![2, 1, 0]],
        );
        let ranking = client
            .rank(&RankRequest::new(&graph, &layouts).with_scores())
            .await
            .unwrap();
        assert_eq!(graph.hash(), Some(ranking.graph_hash));
        answers.push((
            ranking.graph_hash,
            ranking.scores,
            ranking.best,
            cached.configurable_nodes,
        ));
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].1[0] != answers[0].1[1], "{:?}", answers[0].1);
}

#[tokio::test]
async fn a_stream_begins_with_a_graph_as_text() {
    let pair = Pair::read(&fixture(HLO_FIXTURES), "cnn_train.before_opt".to_owned());
    let server = TestServer::start().await;
    let client = server.client().await;
    let [text, module] = [
        GraphHandle::hlo_text(pair.text, Task::Layout, vec![]),
        GraphHandle::hlo_module(pair.proto, Task::Layout, vec![]),
    ];
    let mut stream = client
        .rank_stream(&StreamRequest::new(&text))
        .await
        .unwrap();
    let nodes = client.put_graph(&module).await.unwrap().configurable_nodes;
    let layouts = orders(&nodes, &[vec![0], vec![1, 2]]);
    stream.send(&layouts).await.unwrap();
    let streamed = stream.finish().await.unwrap();
    let ranking = client
        .rank(&RankRequest::new(&module, &layouts))
        .await
        .unwrap();
    assert_eq!(
        (streamed.graph_hash, streamed.best),
        (ranking.graph_hash, ranking.best)
    );
}
