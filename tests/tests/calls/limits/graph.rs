//! Limits of the nodes, edges and bytes of a graph. Those of nodes and edges of a text are tested in `graph`.

use hlorank_tests::prelude::*;

use crate::limits::request::{Past, Servers, dot_and, features, layouts_of};

/// Returns a parameter and dots of it with itself, this number of nodes in total.
fn dots(nodes: i64) -> Vec<u8> {
    let dots = (2..=nodes).map(|id| operation("dot", id, &[1, 1]));
    let parameter = operation("parameter", 1, &[]);
    single([parameter].into_iter().chain(dots).collect())
}

/// Returns a parameter, a dot of it, and this number of edges in total.
fn module_of_edges(count: usize) -> Vec<u8> {
    single(vec![
        operation("parameter", 1, &[]),
        operation("dot", 2, &[1, 1]),
        operation("custom-call", 3, &vec![2; count - 2]),
    ])
}

#[tokio::test]
async fn nodes() {
    let servers = Servers::start(&["--max-nodes=6"]).await;
    let forms = |nodes: usize| {
        [
            Source::HloModule(dots(nodes.try_into().unwrap()).into()),
            Source::Features(features(nodes, &[[1, 0]])),
        ]
        .map(|source| rank_request(graph_of(source), layouts_of(1)))
    };
    let past = Past::setting("TOO_MANY_NODES", "--max-nodes", None, 6);
    servers.check(forms(6), forms(7), past).await;
}

#[tokio::test]
async fn computations_are_bounded_as_nodes_are() {
    let servers = Servers::start(&["--max-nodes=3"]).await;
    let computations = |more: Vec<HloComputationProto>| {
        let dot = [operation("parameter", 1, &[]), operation("dot", 2, &[1, 1])];
        let dot = computation(1, dot.into());
        let module = module([dot].into_iter().chain(more).collect());
        [rank_request(graph_of_module(module), layouts_of(1))]
    };
    let at = computations(vec![computation(2, vec![instruction(3, &[])])]);
    // Computations without instructions have no nodes, and are counted before they are checked.
    let past = computations((2..5).map(|id| computation(id, vec![])).collect());
    let rejection = Past::setting("TOO_MANY_NODES", "--max-nodes", None, 3);
    let rejection = rejection.saying("3 computations");
    servers.check(at, past, rejection).await;
}

#[tokio::test]
async fn edges() {
    let servers = Servers::start(&["--max-nodes=9"]).await;
    let forms = |count: usize| {
        // All edges that nine nodes can have without a cycle, and then the first again.
        let every = (1..9).flat_map(|from| (0..from).map(move |to| [from, to]));
        let pairs: Vec<[u32; 2]> = every.cycle().take(count).collect();
        [
            Source::HloModule(module_of_edges(count).into()),
            Source::Features(features(9, &pairs)),
        ]
        .map(|source| rank_request(graph_of(source), layouts_of(1)))
    };
    let past = Past::setting("TOO_MANY_EDGES", "--max-nodes", None, 36);
    servers.check(forms(36), forms(37), past).await;
}

#[tokio::test]
async fn bytes_of_a_module_and_of_a_text() {
    let servers = Servers::start(&["--max-message-bytes=2000"]).await;
    let forms = |bytes: usize| {
        let mut module = dots(2);
        // A second name of the module as tag, length and bytes.
        let name = bytes - module.len() - 3;
        module.extend([
            1 << 3 | 2,
            0x80 | u8::try_from(name % 128).unwrap(),
            u8::try_from(name / 128).unwrap(),
        ]);
        module.resize(bytes, b'm');
        let text = format!("{:bytes$}", dot_and([]));
        [Source::HloModule(module.into()), Source::HloText(text)]
            .map(|source| rank_request(graph_of(source), layouts_of(1)))
    };
    let past = Past::setting("GRAPH_TOO_LARGE", "--max-message-bytes", 1001, 1000);
    servers.check(forms(1000), forms(1001), past).await;
}
