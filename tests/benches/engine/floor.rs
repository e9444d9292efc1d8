//! What calls cost beside what they cannot do without. A small call: an answer that tonic gives at once, a health check, one
//! configuration with cached embeddings, and sixteen new ones, in turns, each over a connection of its own. A large call: its stages
//! beside the time that copying its bytes takes.

use std::hint::black_box;

use hlorank_tests::prelude::*;

use crate::{
    stages::stages,
    subjects::{WITHOUT_CACHE, alexnet, layout_graph, measured_layouts, random_layouts},
};

/// Number of rounds, of which the first warms up, and of calls of each kind in a round.
const ROUNDS: usize = 6;
const CALLS: usize = 400;

const SIXTEEN: usize = 16;

/// Number of clients that each call again as soon as they have an answer, and for how long.
const CLIENTS: usize = 16;
const LOOP: Duration = Duration::from_secs(2);

/// What calls of one kind took.
#[derive(Default)]
struct Taken {
    times: Vec<Duration>,
    /// Processor time of the server, in microseconds.
    processor: f64,
    /// Context switches of the server.
    switches: f64,
}

/// Measures small calls and a large one.
pub(crate) async fn of_calls() {
    of_small_calls().await;
    if let Some(measured) = alexnet() {
        of_a_large_call(&measured).await;
    }
}

/// Measures the calls, and writes what the cached configuration takes beyond a health check.
async fn of_small_calls() {
    let measured = layout_graph();
    let layouts = measured_layouts(&measured);
    let server = ServerProcess::start(&[]);
    let graph = GraphHandle::from_measured(&measured);
    let graph = server.client().await.put_graph(&graph).await;
    let hash = graph.expect("a graph").hash;
    let request = |batch: &LayoutBatch| {
        let configs = Configs::PackedLayoutConfigs(batch.to_packed());
        rank_request(graph_by_hash(hash.0.to_vec()), configs)
    };
    let one = request(&layouts.select(&[0]));
    let mut random = Rng::with_seed(11);
    let mut new = || request(&random_layouts(layouts, SIXTEEN, &mut random));
    let answers = Answers {
        ranking: server.rank(one.clone()).await.expect("a ranking"),
        ..Answers::default()
    };
    let echo = AnsweringServer::start(answers).await;
    let mut echoes = echo.cost_model().await;
    let mut ranks = server.cost_model().await;
    let mut news = server.cost_model().await;
    let mut health = HealthClient::new(server.channel().await);
    let mut taken: [Taken; 4] = Default::default();
    for round in 0..ROUNDS {
        if round == 1 {
            taken = Default::default();
        }
        let [answered, checked, cached, drawn] = &mut taken;
        let echo = async || drop(echoes.rank_configs(one.clone()).await.expect("an answer"));
        answered.add(&server, echo).await;
        let check = async || {
            let request = HealthCheckRequest::default();
            health.check(request).await.expect("an answer");
        };
        checked.add(&server, check).await;
        let rank = async || drop(ranks.rank_configs(one.clone()).await.expect("a ranking"));
        cached.add(&server, rank).await;
        let rank = async || drop(news.rank_configs(new()).await.expect("a ranking"));
        drawn.add(&server, rank).await;
    }
    let [answered, checked, cached, drawn] = taken;
    let how = format!(
        "one layout of {} with cached embeddings beyond a health check, p50 of {} calls: {:.0} and {:.0} us; tonic alone {:.0}, \
         {SIXTEEN} new layouts {:.0}",
        measured.name,
        cached.times.len(),
        cached.median(),
        checked.median(),
        answered.median(),
        drawn.median(),
    );
    let beyond = cached.median() - checked.median();
    write(
        "small_call_beyond_health",
        beyond,
        "us",
        Target::AtMost(60.0),
        how,
    );
    let calls = cached.times.len() as f64;
    let [of_cached, of_checked] = [&cached, &checked].map(|taken| taken.switches / calls);
    let how =
        format!("context switches of the server in such a call; in a health check {of_checked:.1}");
    write(
        "small_call_switches",
        of_cached,
        "",
        Target::AtMost(3.0),
        how,
    );
    let [of_cached, of_checked] = [&cached, &checked].map(|taken| taken.processor / calls);
    let how = format!(
        "processor time of the server in such a call over a health check's: {of_cached:.0} and {of_checked:.0} us"
    );
    let ratio = of_cached / of_checked;
    write("small_call_processor", ratio, "x", Target::AtMost(1.8), how);
    let [mut of_tonic, mut of_server] = [0.0; 2];
    for _ in 0..3 {
        of_tonic += calls_per_second(&echoes, &one).await / 3.0;
        of_server += calls_per_second(&ranks, &one).await / 3.0;
    }
    let how = format!(
        "calls per second of {CLIENTS} clients, for such a call over tonic's answers of the same bytes: {of_server:.0} and {of_tonic:.0}"
    );
    let ratio = of_server / of_tonic;
    write(
        "small_calls_beside_tonic",
        ratio,
        "x",
        Target::AtLeast(0.5),
        how,
    );
}

/// Measures the stages of a call with all measured layouts, beside what copying its bytes takes.
async fn of_a_large_call(measured: &MeasuredGraph) {
    let layouts = measured_layouts(measured);
    let graph = GraphHandle::from_measured(measured);
    let server = ServerProcess::start(&[WITHOUT_CACHE]);
    let client = server.client().await;
    let request = RankRequest::new(&graph, configurations(measured)).top(10);
    let mut calls = Vec::new();
    for _ in 0..2 * ROUNDS {
        let start = Instant::now();
        let timings = client.rank(&request).await.expect("a ranking").timings;
        calls.push((start.elapsed(), timings));
    }
    calls.sort_by_key(|(took, _)| *took);
    let (took, timings) = calls[calls.len() / 2];
    let of_server = stages(&timings).map(|(stage, time)| format!("{stage} {time:.1}"));
    let model = load_model(Task::Layout, 1);
    let size = model
        .segment()
        .expect("a segment model")
        .settings
        .embedding_size;
    let bytes = layouts.len() * (layouts.slots() + 2 * size * size_of::<f32>());
    println!(
        "{} layouts of {} at the client: {took:.1?}; on the server in ms: {}, total {:.1?}; copying the {:.0} MB of indices and \
         sums takes {:.1} ms",
        layouts.len(),
        measured.name,
        of_server.join(", "),
        timings.total,
        bytes as f64 * 1e-6,
        copying(bytes),
    );
}

/// Returns the milliseconds of copying bytes, at best.
fn copying(bytes: usize) -> f64 {
    let from = vec![1_u8; bytes];
    let mut to = vec![0_u8; bytes];
    let copy = || black_box(&mut to).copy_from_slice(black_box(&from));
    Times::of_runs(ROUNDS, copy).fastest()
}

/// Returns the calls per second of some clients, each with a clone of a connection.
async fn calls_per_second(
    client: &CostModelServiceClient<Channel>,
    request: &RankConfigsRequest,
) -> f64 {
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, request) = (client.clone(), request.clone());
        clients.spawn(async move {
            let mut calls = 0_u32;
            while start.elapsed() < LOOP {
                let answer = client.rank_configs(request.clone()).await;
                answer.expect("an answer");
                calls += 1;
            }
            calls
        });
    }
    let calls: u32 = clients.join_all().await.into_iter().sum();
    f64::from(calls) / start.elapsed().as_secs_f64()
}

impl Taken {
    /// Adds a round of calls.
    async fn add(&mut self, server: &ServerProcess, mut call: impl AsyncFnMut()) {
        let [processor, switches] = used(server.id());
        for _ in 0..CALLS {
            let start = Instant::now();
            call().await;
            self.times.push(start.elapsed());
        }
        let [processor_after, switches_after] = used(server.id());
        self.processor += processor_after - processor;
        self.switches += switches_after - switches;
    }

    /// Returns the median time in microseconds.
    fn median(&self) -> f64 {
        Times::new(self.times.iter().copied()).median() * 1e3
    }
}

/// Returns the processor time of a process in microseconds, and the context switches of its threads.
fn used(process: u32) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for task in fs::read_dir(format!("/proc/{process}/task")).expect("a running process") {
        let folder = task.expect("a thread").path();
        // A thread may have ended by now.
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let number = |text: Option<&str>| text.and_then(|text| text.trim().parse().ok());
        let nanoseconds: Option<f64> = number(read("schedstat").split(' ').next());
        sums[0] += nanoseconds.unwrap_or_default() / 1e3;
        let status = read("status");
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        let switches = switches.filter_map(|line| number(line.split(':').nth(1)));
        sums[1] += switches.sum::<f64>();
    }
    sums
}

fn write(name: &str, value: f64, unit: &'static str, target: Target, how: String) {
    Figure {
        name: name.to_owned(),
        value,
        unit,
        target,
        how,
    }
    .write();
}
