//! Limits of the nodes, edges and bytes of a graph.

use hlorank_tests::prelude::*;

use crate::limits::request::{Past, Servers, features, layouts_of, text};

/// Returns a parameter and dots of it with itself, this number of nodes in total.
fn dots(nodes: i64) -> Vec<u8> {
    let dots = (2..=nodes).map(|id| operation("dot", id, &[1, 1]));
    single(
        [operation("parameter", 1, &[])]
            .into_iter()
            .chain(dots)
            .collect(),
    )
}

/// Returns the same module as text.
fn dots_text(nodes: usize) -> String {
    let dots = (1..nodes).map(|node| {
        format!(
            "d.{node} = f32[8,8] dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )
    });
    let lines: Vec<String> = ["p = f32[8,8] parameter(0)".to_owned()]
        .into_iter()
        .chain(dots)
        .collect();
    text(&lines)
}

/// Returns a parameter, a dot of it, and this number of edges in total.
fn edges(count: usize) -> Vec<u8> {
    let reads = operation("custom-call", 3, &vec![2; count - 2]);
    single(vec![
        operation("parameter", 1, &[]),
        operation("dot", 2, &[1, 1]),
        reads,
    ])
}

fn edges_text(count: usize) -> String {
    let lines = [
        "p = f32[8,8] parameter(0)".to_owned(),
        "d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}".to_owned(),
        format!(
            "c = f32[8,8] custom-call({}), custom_call_target=\"t\"",
            vec!["d"; count - 2].join(", ")
        ),
    ];
    text(&lines)
}

#[tokio::test]
async fn nodes() {
    let servers = Servers::start(&["--max-nodes=6"]).await;
    let form = |nodes: usize| {
        [
            Source::HloModule(dots(nodes.try_into().unwrap()).into()),
            Source::HloText(dots_text(nodes)),
            Source::Features(features(nodes, &[[1, 0]])),
        ]
        .map(|source| rank_request(graph_of(source), layouts_of(1)))
    };
    for at in form(6) {
        servers.take(at).await;
    }
    for past in form(7) {
        servers
            .refuse(
                past,
                Past::setting("TOO_MANY_NODES", "--max-nodes", None, 6),
            )
            .await;
    }
}

#[tokio::test]
async fn computations_are_bounded_as_nodes_are() {
    let servers = Servers::start(&["--max-nodes=3"]).await;
    let computations = |more: Vec<HloComputationProto>| {
        let dot = computation(
            1,
            vec![operation("parameter", 1, &[]), operation("dot", 2, &[1, 1])],
        );
        let all = [dot].into_iter().chain(more);
        rank_request(
            graph_of(Source::HloModule(module(all.collect()).into())),
            layouts_of(1),
        )
    };
    servers
        .take(computations(vec![computation(
            2,
            vec![instruction(3, &[])],
        )]))
        .await;
    // Computations without instructions have no nodes, and are counted before they are checked.
    let empty = (2..5).map(|id| computation(id, vec![]));
    let past = Past::setting("TOO_MANY_NODES", "--max-nodes", None, 3);
    let message = servers.refuse(computations(empty.collect()), past).await;
    says!(message, "3 computations");
}

#[tokio::test]
async fn edges_of_every_form() {
    let servers = Servers::start(&["--max-nodes=9"]).await;
    let form = |count: usize| {
        // All edges that nine nodes can have without a cycle, and then the first again.
        let every = (1..9).flat_map(|from| (0..from).map(move |to| [from, to]));
        let pairs: Vec<[u32; 2]> = every.cycle().take(count).collect();
        [
            Source::HloModule(edges(count).into()),
            Source::HloText(edges_text(count)),
            Source::Features(features(9, &pairs)),
        ]
        .map(|source| rank_request(graph_of(source), layouts_of(1)))
    };
    for at in form(36) {
        servers.take(at).await;
    }
    for past in form(37) {
        servers
            .refuse(
                past,
                Past::setting("TOO_MANY_EDGES", "--max-nodes", None, 36),
            )
            .await;
    }
}

#[tokio::test]
async fn bytes_of_a_module_and_of_a_text() {
    let servers = Servers::start(&["--max-message-bytes=2000"]).await;
    let forms = |bytes: usize| {
        let mut module = two_dots();
        // A second name of the module as tag, length and bytes.
        let name = bytes - module.len() - 3;
        module.extend([
            1 << 3 | 2,
            0x80 | u8::try_from(name % 128).unwrap(),
            u8::try_from(name / 128).unwrap(),
        ]);
        module.resize(bytes, b'm');
        let mut text = dots_text(4);
        text.extend(std::iter::repeat_n(' ', bytes - text.len()));
        [Source::HloModule(module.into()), Source::HloText(text)]
    };
    for (at, node) in forms(1000).into_iter().zip([3, 1]) {
        servers
            .take(rank_request(graph_of(at), layouts_of(node)))
            .await;
    }
    for past in forms(1001) {
        let refusal = Past::setting("GRAPH_TOO_LARGE", "--max-message-bytes", 1001, 1000);
        servers
            .refuse(rank_request(graph_of(past), layouts_of(3)), refusal)
            .await;
    }
}
