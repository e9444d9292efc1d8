//! What calls cost beside what they cannot do without. A small call: an answer that tonic gives at once, a health check, one
//! configuration with cached embeddings, and sixteen new ones, in turns, each over a connection of its own. A large call: its stages
//! beside the time that copying its bytes takes.

use std::hint::black_box;

use futures::future::join_all;
use hlorank_client::Timings;
use hlorank_proto::v1::StageTimings;
use hlorank_tests::prelude::*;

use crate::subjects::{alexnet, layout_graph, measured_layouts, random_layouts};

/// Number of rounds, of which the first warms up, and of calls of each kind in a round.
const ROUNDS: usize = 6;
const CALLS: usize = 400;

const SIXTEEN: usize = 16;

/// Number of clients that each call again as soon as they have an answer, and for how long.
const CLIENTS: usize = 16;
const LOOP: Duration = Duration::from_secs(2);

/// What calls of one kind took.
struct Taken {
    /// Duration of each call, in microseconds.
    times: Vec<f64>,
    /// Processor time of the server, in microseconds.
    processor: f64,
    /// Context switches of the server.
    switches: f64,
}

/// Measures the calls, and writes what the cached configuration takes beyond a health check.
pub(crate) async fn of_small_calls() {
    let measured = layout_graph();
    let layouts = measured_layouts(&measured);
    let server = ServerProcess::start(&[]);
    let graph = GraphHandle::from_measured(&measured);
    let graph = server.client().await.put_graph(&graph).await;
    let hash = graph.expect("a graph").hash;
    let request = |batch: &LayoutBatch| RankConfigsRequest {
        graph: Some(Graph {
            source: Some(Source::GraphHash(hash.0.to_vec().into())),
            ..Graph::default()
        }),
        batch: Some(ConfigBatch {
            configs: Some(Configs::PackedLayoutConfigs(batch.to_packed())),
        }),
        ..RankConfigsRequest::default()
    };
    let one = request(&layouts.select(&[0]));
    let mut random = Rng::with_seed(11);
    let mut new = || request(&random_layouts(layouts, SIXTEEN, &mut random));
    let answers = Answers {
        ranking: server.rank(one.clone()).await.expect("a ranking"),
        ..Answers::default()
    };
    let echo = AnsweringServer::start(answers).await;
    let [mut echoes, mut ranks, mut news] = [
        echo.cost_model().await,
        server.cost_model().await,
        server.cost_model().await,
    ];
    let mut health = HealthClient::new(server.channel().await);
    let [mut answered, mut checked, mut cached, mut drawn] = [const { Taken::NONE }; 4];
    let mut stages = Vec::new();
    for round in 0..ROUNDS {
        if round == 1 {
            for taken in [&mut answered, &mut checked, &mut cached, &mut drawn] {
                *taken = Taken::NONE;
            }
        }
        let echo = async || drop(echoes.rank_configs(one.clone()).await.expect("an answer"));
        answered.add(&server, echo).await;
        let check = async || {
            let request = HealthCheckRequest::default();
            health.check(request).await.expect("an answer");
        };
        checked.add(&server, check).await;
        let rank = async || {
            let answer = ranks.rank_configs(one.clone()).await.expect("a ranking");
            stages.extend(answer.into_inner().timings);
        };
        cached.add(&server, rank).await;
        let rank = async || drop(news.rank_configs(new()).await.expect("a ranking"));
        drawn.add(&server, rank).await;
    }
    let beyond = cached.median() - checked.median();
    let how = format!(
        "one layout of {} with cached embeddings beyond a health check, p50 of {} calls: {:.0} and {:.0} us; tonic alone {:.0}, \
         {SIXTEEN} new layouts {:.0}; on the server{}",
        measured.name,
        cached.times.len(),
        cached.median(),
        checked.median(),
        answered.median(),
        drawn.median(),
        of_stages(&stages),
    );
    figure("small_call_beyond_health", beyond, "us", 60.0, how);
    let calls = cached.times.len() as f64;
    let switches = |taken: &Taken| taken.switches / calls;
    let processor = |taken: &Taken| taken.processor / calls;
    let how = format!(
        "context switches of the server in such a call; in a health check {:.1}",
        switches(&checked)
    );
    figure("small_call_switches", switches(&cached), "", 3.0, how);
    let how = format!(
        "processor time of the server in such a call over a health check's: {:.0} and {:.0} us",
        processor(&cached),
        processor(&checked)
    );
    let ratio = processor(&cached) / processor(&checked);
    figure("small_call_processor", ratio, "x", 1.8, how);
    let [mut of_tonic, mut of_server] = [0.0; 2];
    for _ in 0..3 {
        of_tonic += calls_per_second(&echoes, &one).await / 3.0;
        of_server += calls_per_second(&ranks, &one).await / 3.0;
    }
    Figure {
        name: "small_calls_beside_tonic".to_owned(),
        value: of_server / of_tonic,
        unit: "x",
        target: Target::AtLeast(0.5),
        how: format!(
            "calls per second of {CLIENTS} clients, for such a call over tonic's answers of the same bytes: {of_server:.0} and {of_tonic:.0}"
        ),
    }
    .write();
}

/// Measures the stages of a call with all measured layouts, beside what copying its bytes takes.
pub(crate) async fn of_a_large_call() {
    let Some(measured) = alexnet() else { return };
    let layouts = measured_layouts(&measured);
    let graph = GraphHandle::from_measured(&measured);
    let configurations = Configurations::Layout(layouts.clone());
    let server = ServerProcess::start(&["--embedding-cache-bytes", "0"]);
    let client = server.client().await;
    let request = RankRequest::new(&graph, &configurations).top(10);
    let mut calls: Vec<(f64, Timings)> = Vec::new();
    for _ in 0..2 * ROUNDS {
        let start = Instant::now();
        let timings = client.rank(&request).await.expect("a ranking").timings;
        calls.push((start.elapsed().as_secs_f64() * 1e3, timings));
    }
    calls.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (took, timings) = &calls[calls.len() / 2];
    let size = load_model(Task::Layout, 1)
        .segment()
        .expect("a segment model")
        .settings
        .embedding_size;
    let bytes = layouts.len() * (layouts.slots() + 2 * size * size_of::<f32>());
    let of_stage = |stage: Duration| stage.as_secs_f64() * 1e3;
    println!(
        "{} layouts of {} at the client: {took:.1} ms; on the server: queue {:.1}, parse {:.1}, encode {:.1}, head {:.1}, rank {:.1}, total \
         {:.1} ms; copying the {:.0} MB of indices and sums takes {:.1} ms",
        layouts.len(),
        measured.name,
        of_stage(timings.queue),
        of_stage(timings.parse),
        of_stage(timings.encode),
        of_stage(timings.head),
        of_stage(timings.rank),
        of_stage(timings.total),
        bytes as f64 * 1e-6,
        copying(bytes),
    );
}

/// Returns the milliseconds of copying bytes, at best.
fn copying(bytes: usize) -> f64 {
    let from = vec![1_u8; bytes];
    let mut to = vec![0_u8; bytes];
    let copy = || black_box(&mut to).copy_from_slice(black_box(&from));
    times(ROUNDS, copy)[0].as_secs_f64() * 1e3
}

/// Returns the calls per second of some clients, each with a clone of a connection.
async fn calls_per_second(
    client: &CostModelServiceClient<Channel>,
    request: &RankConfigsRequest,
) -> f64 {
    let start = Instant::now();
    let looping = (0..CLIENTS).map(|_| {
        let (mut client, request) = (client.clone(), request.clone());
        tokio::spawn(async move {
            let mut calls = 0;
            while start.elapsed() < LOOP {
                let answer = client.rank_configs(request.clone()).await;
                answer.expect("an answer");
                calls += 1;
            }
            calls
        })
    });
    let calls = join_all(looping).await;
    let calls: u32 = calls.into_iter().map(|calls| calls.expect("calls")).sum();
    f64::from(calls) / start.elapsed().as_secs_f64()
}

impl Taken {
    const NONE: Self = Self {
        times: Vec::new(),
        processor: 0.0,
        switches: 0.0,
    };

    /// Adds a round of calls.
    async fn add(&mut self, server: &ServerProcess, call: impl AsyncFnMut()) {
        let [processor, switches] = used(server.id());
        let times = call_times(CALLS, call).await;
        let [processor_after, switches_after] = used(server.id());
        self.times.extend(times.iter().map(|time| time * 1e3));
        self.processor += processor_after - processor;
        self.switches += switches_after - switches;
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
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

/// Returns the median of each stage of calls, as text.
fn of_stages(timings: &[StageTimings]) -> String {
    type Stage = fn(&StageTimings) -> Option<prost_types::Duration>;
    let all: [(&str, Stage); 6] = [
        ("queue", |timings| timings.queue),
        ("parse", |timings| timings.parse),
        ("encode", |timings| timings.encode),
        ("head", |timings| timings.head),
        ("rank", |timings| timings.rank),
        ("total", |timings| timings.total),
    ];
    let median = |stage: Stage| {
        let mut times: Vec<_> = timings
            .iter()
            .filter_map(stage)
            .map(|time| time.nanos)
            .collect();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(0, |nanos| nanos / 1000)
    };
    let texts = all.map(|(name, stage)| format!(" {name} {}", median(stage)));
    texts.join(",")
}

fn figure(name: &str, value: f64, unit: &'static str, most: f64, how: String) {
    Figure {
        name: name.to_owned(),
        value,
        unit,
        target: Target::AtMost(most),
        how,
    }
    .write();
}
