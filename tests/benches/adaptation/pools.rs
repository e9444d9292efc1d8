//! What stored measurements of kernels of one structure are worth for a kernel of it that was not measured.

use hlorank_tests::prelude::*;

use super::{CALLS, adapt, adapt_on, distinct, drawn, mean, rank, run_time, tau};

/// Kernels that are judged together, and the tau that is expected of their pools.
const GROUPS: [(&str, f64); 2] = [("halide_kernels", 0.5), ("unseen_families", 0.62)];

/// Measurements of the kernel itself, beside none.
const OWN: usize = 10;
/// Tiles that must be left to rank after these.
const LEFT: usize = 4;

/// What became of the kernels of a group.
#[derive(Default)]
struct Findings {
    /// Tau of the model's order, and of the pool's.
    before: [Vec<f64>; 2],
    /// The same after some measurements of the kernel itself.
    after: [Vec<f64>; 2],
    /// Tiles to measure in the order of the model, and of the pool, until one is within 1 % of the fastest.
    until: [Vec<f64>; 2],
    used: Vec<f64>,
}

pub(crate) async fn judge() {
    let folder = tempfile::tempdir().expect("a folder");
    let measurements = store_flag(folder.path());
    let server = TestServer::start_with(&[&measurements]).await;
    let client = server.client().await;
    println!(
        "| kernels | number | pool used | tau of model | of pool | after {OWN} own | and pool | until 1 % by model | by pool |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, least) in GROUPS {
        let graphs: Vec<MeasuredGraph> = read_graphs(&fixture(&format!("pools/{name}.pb")))
            .into_iter()
            .map(distinct)
            .collect();
        for graph in &graphs {
            report(&client, graph, name, false).await;
            report(&client, graph, "shuffled", true).await;
        }
        let findings = findings(&client, &graphs, name).await;
        findings.print(name, graphs.len());
        let shuffled = self::findings(&client, &graphs, "shuffled").await;
        println!(
            "{:.0} % of pools of shuffled times were used",
            100.0 * mean(&shuffled.used)
        );
        let [model, pool] = findings.before.each_ref().map(|taus| mean(taus));
        Figure {
            name: format!("pooled_{name}"),
            value: pool,
            unit: "tau",
            target: Target::AtLeast(least),
            how: format!(
                "before a kernel is measured, from up to 8 others; {} kernels; {model:.2} without",
                graphs.len()
            ),
        }
        .write();
        time(&client, &graphs[0], name).await;
        client
            .delete_measurements(&deletion("shuffled", None))
            .await
            .expect("a deletion");
    }
}

async fn report(client: &Client, graph: &MeasuredGraph, target: &str, shuffled: bool) {
    let all = configurations(graph);
    let mut times: Vec<f64> = (0..all.len())
        .map(|config| run_time(graph, config) * 1e-9)
        .collect();
    if shuffled {
        Rng::with_seed(all.len() as u64).shuffle(&mut times);
    }
    let measured: Vec<MeasuredOutcome> = times
        .iter()
        .map(|&seconds| MeasuredOutcome::Time {
            seconds,
            repeats: 1,
        })
        .collect();
    let measurements = Adapt::new(target).measured(all, &measured);
    client
        .report_measurements(&GraphHandle::from_measured(graph), &measurements)
        .await
        .expect("a report");
}

/// Ranks each kernel as if the others had been measured, and it had not.
async fn findings(client: &Client, graphs: &[MeasuredGraph], target: &str) -> Findings {
    let mut findings = Findings::default();
    for graph in graphs {
        client
            .delete_measurements(&deletion(target, Some(graph.graph.hash())))
            .await
            .expect("a deletion");
        let model = rank(client, graph, None).await;
        let pool = rank(client, graph, Some(Adapt::new(target).use_stored())).await;
        let used = pool
            .adaptation
            .as_ref()
            .is_some_and(|adaptation| adaptation.sources.iter().any(|source| source.used));
        findings.used.push(f64::from(u8::from(used)));
        for (place, ranking) in [&model, &pool].into_iter().enumerate() {
            findings.before[place].extend(tau(graph, &ranking.scores, &[]));
            findings.until[place].push(until_fastest(graph, &ranking.scores));
        }
        if configurations(graph).len() >= OWN + LEFT {
            let chosen = drawn(graph, OWN, 0);
            let adapts = [
                adapt(graph, &chosen),
                adapt_on(target, graph, &chosen).use_stored(),
            ];
            for (place, adapt) in adapts.into_iter().enumerate() {
                let scores = rank(client, graph, Some(adapt)).await.scores;
                findings.after[place].extend(tau(graph, &scores, &chosen));
            }
        }
        report(client, graph, target, target == "shuffled").await;
    }
    findings
}

/// How many tiles are measured in the order of their scores until one is within 1 % of the fastest.
fn until_fastest(graph: &MeasuredGraph, scores: &[f32]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&one, &other| scores[one].total_cmp(&scores[other]));
    let fastest = order
        .iter()
        .map(|&config| run_time(graph, config))
        .fold(f64::INFINITY, f64::min);
    let fast = |&config: &usize| run_time(graph, config) <= 1.01 * fastest;
    order
        .iter()
        .position(fast)
        .map_or(f64::INFINITY, |place| (place + 1) as f64)
}

impl Findings {
    fn print(&self, name: &str, number: usize) {
        let [model, pool] = self.before.each_ref().map(|taus| mean(taus));
        let [own, both] = self.after.each_ref().map(|taus| mean(taus));
        let [until_model, until_pool] = self.until.each_ref().map(|counts| mean(counts));
        println!(
            "| {name} | {number} | {:.0} % | {model:.3} | {pool:.3} | {own:.3} | {both:.3} | {until_model:.2} | {until_pool:.2} |",
            100.0 * mean(&self.used),
        );
    }
}

/// Measures a call that learns from a pool.
async fn time(client: &Client, graph: &MeasuredGraph, target: &str) {
    let handle = GraphHandle::from_measured(graph);
    client
        .delete_measurements(&deletion(target, Some(graph.graph.hash())))
        .await
        .expect("a deletion");
    let plain = RankRequest::new(&handle, configurations(graph));
    let pooled = RankRequest::new(&handle, configurations(graph))
        .adapt(Some(Adapt::new(target).use_stored()));
    let call =
        async |request: &RankRequest<'_>| drop(client.rank(request).await.expect("a ranking"));
    let without = call_times(CALLS, async || call(&plain).await).await[CALLS / 2];
    let with = call_times(CALLS, async || call(&pooled).await).await[CALLS / 2];
    println!(
        "a call with a pool of {target} takes {with:.1} ms (median of {CALLS}), {without:.1} ms without"
    );
}
