//! Modules after optimization have a warning, which no module has that a tuner should send.

use hlorank_graph::is_made_by_optimization;
use hlorank_proto::v1::Task as WireTask;
use hlorank_tests::prelude::*;

const WARNING: &str = "OPTIMIZED_MODULE";

/// Programs, each before and after XLA:CPU's optimization.
const PROGRAMS: [&str; 3] = ["cnn_train", "control_flow_mix", "mlp_train"];

/// Returns the warnings of this kind for a graph whose layouts or tiles are chosen.
async fn warnings(server: &TestServer, graph: Graph, task: WireTask) -> Vec<String> {
    let graph = Some(Graph {
        task: task.into(),
        ..graph
    });
    let answer = server
        .cost_model()
        .await
        .put_graph(PutGraphRequest { graph })
        .await
        .unwrap()
        .into_inner();
    let warnings = answer
        .warnings
        .into_iter()
        .filter(|warning| warning.reason == WARNING);
    warnings.map(|warning| warning.message).collect()
}

fn text(name: &str) -> Graph {
    graph_of_text(fs::read_to_string(fixture(&format!("hlo/{name}.hlo.txt"))).unwrap())
}

fn module(name: &str) -> Graph {
    graph_of_module(fs::read(fixture(&format!("hlo/{name}.hlo_module.pb"))).unwrap())
}

#[tokio::test]
async fn a_dump_after_optimization_has_a_warning_that_says_how_to_dump_before_it() {
    let server = TestServer::start().await;
    for program in PROGRAMS {
        for form in [text, module] {
            let found = warnings(
                &server,
                form(&format!("{program}.cpu_after_opt")),
                WireTask::Layout,
            )
            .await;
            assert_eq!(found.len(), 1, "{program}: {found:?}");
            says!(found[0], "before_optimizations.txt");
        }
    }
}

#[tokio::test]
async fn modules_before_optimization_and_kernels_have_no_such_warning() {
    let server = TestServer::start().await;
    for program in PROGRAMS {
        for form in [text, module] {
            let found = warnings(
                &server,
                form(&format!("{program}.before_opt")),
                WireTask::Layout,
            )
            .await;
            assert!(found.is_empty(), "{program}: {found:?}");
        }
        let found = warnings(
            &server,
            text(&format!("{program}.cpu_after_opt")),
            WireTask::Tile,
        )
        .await;
        assert!(found.is_empty(), "{program}: {found:?}");
    }
}

#[test]
fn measured_programs_are_modules_before_optimization() {
    for name in [
        "layout_random_window_nchw_train.pb",
        "layout_random_window_reversed.pb",
    ] {
        let path = fixture("measured").join(name);
        for measured in GraphFile::read(&path, Task::Layout, &Limits::default())
            .unwrap()
            .graphs
        {
            let optimized = measured
                .graph
                .opcodes()
                .iter()
                .filter(|opcode| is_made_by_optimization(**opcode));
            assert_eq!(optimized.count(), 0, "{name}");
        }
    }
}
