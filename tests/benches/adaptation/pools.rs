//! What stored measurements of kernels of one structure are worth for a kernel of it that was not measured.

use hlorank_tests::prelude::*;

use super::{LEFT, distinct, drawn, mean, tau};

/// Kernels that are judged together, and the tau that is expected of their pools.
const GROUPS: [(&str, f64); 2] = [("halide_kernels", 0.5), ("unseen_families", 0.62)];

/// Measurements of the kernel itself, beside none.
const OWN: usize = 10;

/// Tau of the orders of the kernels of a group.
#[derive(Default)]
struct Findings {
    model: Vec<f64>,
    pool: Vec<f64>,
    /// Tau of the model that learned from `OWN` measurements of the kernel itself.
    own: Vec<f64>,
    /// Number of kernels whose pool was used.
    used: usize,
}

pub(crate) async fn judge() {
    let (_folder, _server, client) = storing_server(&[]).await;
    println!("| kernels | number | pools used | tau of model | of pool | after {OWN} own |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (name, least) in GROUPS {
        let graphs = read_graphs(&fixture(&format!("pools/{name}.pb")));
        let graphs: Vec<MeasuredGraph> = graphs.into_iter().map(distinct).collect();
        for graph in &graphs {
            report(&client, graph, name).await;
        }
        let findings = findings(&client, &graphs, name).await;
        let Findings {
            model,
            pool,
            own,
            used,
        } = &findings;
        let [model, pool, own] = [model, pool, own].map(|taus| mean(taus));
        let number = graphs.len();
        println!("| {name} | {number} | {used} | {model:.3} | {pool:.3} | {own:.3} |");
        Figure {
            name: format!("pooled_{name}"),
            value: pool,
            unit: "tau",
            target: Target::AtLeast(least),
            how: format!(
                "before a kernel is measured, from up to 8 others; {number} kernels; {model:.2} without"
            ),
        }
        .write();
    }
}

async fn report(client: &Client, graph: &MeasuredGraph, target: &str) {
    let all: Vec<usize> = (0..configurations(graph).len()).collect();
    let handle = GraphHandle::from_measured(graph);
    let measured = adapt(target, graph, &all);
    let report = client.report_measurements(&handle, &measured).await;
    report.expect("a report");
}

/// Ranks each kernel as if the others had been measured, and it had not.
async fn findings(client: &Client, graphs: &[MeasuredGraph], target: &str) -> Findings {
    let mut findings = Findings::default();
    for graph in graphs {
        let own = deletion(target, Some(graph.graph.hash()));
        client.delete_measurements(&own).await.expect("a deletion");
        let model = rank_measured(client, graph, None).await;
        findings.model.extend(tau(graph, &model.scores, &[]));
        let stored = Adapt::new(target).use_stored();
        let pool = rank_measured(client, graph, Some(stored)).await;
        findings.pool.extend(tau(graph, &pool.scores, &[]));
        let is_used = pool
            .adaptation
            .is_some_and(|adaptation| adaptation.sources.iter().any(|source| source.used));
        findings.used += usize::from(is_used);
        if configurations(graph).len() >= OWN + LEFT {
            let chosen = drawn(graph, OWN, 0);
            let own = adapt("own", graph, &chosen);
            let own = rank_measured(client, graph, Some(own)).await;
            findings.own.extend(tau(graph, &own.scores, &chosen));
        }
        report(client, graph, target).await;
    }
    findings
}
