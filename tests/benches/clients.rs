//! Client time of a call beside the server's time, in Rust and in Python, with 1,000 packed layouts.

use hlorank_tests::prelude::*;

const CONFIGS: usize = 1_000;
const CALLS: usize = 300;
/// Number of warm-up calls.
const WARM_UP: usize = 20;
/// Number of rounds. Rust and Python alternate, so that other load of the machine affects both.
const ROUNDS: usize = 9;

/// Seconds of each call at the client minus those at the server, ascending, and seconds of packing.
struct Overhead {
    calls: Vec<f64>,
    packing: f64,
}

impl Overhead {
    fn least(&self) -> f64 {
        self.calls[0]
    }

    fn median(&self) -> f64 {
        self.calls[self.calls.len() / 2]
    }
}

fn main() {
    let alexnet = shared("data/tpu/alexnet_layout.npz");
    let file = alexnet.unwrap_or_else(|| fixture("measured/layout_random_window_nchw_train.pb"));
    let server = ServerProcess::start(&[]);
    let rounds: Vec<[Overhead; 2]> = (0..ROUNDS)
        .map(|_| {
            [
                rust(server.endpoint(), &file),
                python(server.endpoint(), &file),
            ]
        })
        .collect();

    println!(
        "{:>6}{:>12}{:>12}{:>12}{:>12}",
        "", "rust least", "median", "python least", "median"
    );
    for [rust, python] in &rounds {
        let times = [rust.least(), rust.median(), python.least(), python.median()];
        println!(
            "{:>6}{}",
            "µs",
            times.map(|time| format!("{:>12.0}", time * 1e6)).concat()
        );
    }
    let [rust_packing, python_packing] =
        [0, 1].map(|client| middle(rounds.iter().map(|round| round[client].packing)));
    println!(
        "packing: {:.2} ms in Rust, {:.2} ms in Python",
        rust_packing * 1e3,
        python_packing * 1e3
    );
    let ratio = |of: fn(&Overhead) -> f64| {
        middle(rounds.iter().map(|[rust, python]| of(python) / of(rust)))
    };
    Figure {
        name: "python_client_overhead".to_owned(),
        value: ratio(Overhead::median),
        unit: "x",
        target: Target::AtMost(2.0),
        how: format!(
            "time at the client less the server's of a call with {CONFIGS} packed layouts of {}: median of {CALLS} \
             calls in Python over that in Rust, the middle one of {ROUNDS} rounds; {:.2} x for the fastest call",
            file.file_stem().unwrap_or_default().to_string_lossy(),
            ratio(Overhead::least),
        ),
    }
    .write();
}

/// Returns the median.
fn middle(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn rust(endpoint: &str, file: &Path) -> Overhead {
    let measured: MeasuredGraph = read_graphs(file).remove(0);
    let all = configurations(&measured);
    let chosen = part(all, (0..CONFIGS).map(|config| config % all.len()));
    let graph = GraphHandle::of(&measured);
    let request = RankRequest::new(&graph, &chosen).top(10);
    let calls = Runtime::new().expect("a runtime").block_on(async {
        let client = Client::connect(endpoint, Connection::default())
            .await
            .expect("a server");
        let mut calls = Vec::new();
        for _ in 0..WARM_UP + CALLS {
            calls.push(overhead(&client, &request).await);
        }
        calls.split_off(WARM_UP)
    });
    let mut calls: Vec<f64> = calls.iter().map(Duration::as_secs_f64).collect();
    calls.sort_by(f64::total_cmp);
    Overhead {
        calls,
        packing: packing(&chosen),
    }
}

async fn overhead(client: &Client, request: &RankRequest<'_>) -> Duration {
    let start = Instant::now();
    let ranking = client.rank(request).await.expect("a ranking");
    start.elapsed().saturating_sub(ranking.timings.total)
}

/// Returns the minimum time in seconds to build a request from 18 values per entry.
fn packing(configurations: &Configurations) -> f64 {
    let Configurations::Layout(batch) = configurations else {
        panic!("layouts")
    };
    let values: Vec<[i32; 18]> = (0..batch.len())
        .flat_map(|config| {
            (0..batch.slots()).map(move |slot| batch.entry(config, slot).values().map(i32::from))
        })
        .collect();
    let runs = times(20, || drop(packed(&values, batch.slots()).to_packed()));
    runs[0].as_secs_f64()
}

fn packed(values: &[[i32; 18]], slots: usize) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(slots, Limits::default());
    for config in values.chunks_exact(slots) {
        let entries = config
            .iter()
            .map(|values| LayoutEntry::from_values(values, String::new));
        builder
            .push(
                &entries
                    .collect::<Result<Vec<_>, _>>()
                    .expect("values of -1 to 5"),
            )
            .expect("a few");
    }
    builder.build().expect("a batch")
}

fn python(endpoint: &str, file: &Path) -> Overhead {
    let package = repository("client/python");
    let python = repository("target/python/bin/python");
    let absolute = |path: PathBuf| {
        path.canonicalize()
            .expect("`make lint-python` sets Python up")
    };
    let output =
        Command::new(absolute(python.parent().expect("a folder").to_owned()).join("python"))
            .arg(package.join("benchmarks/overhead.py"))
            .args([
                "--address",
                endpoint,
                "--configs",
                &CONFIGS.to_string(),
                "--calls",
                &CALLS.to_string(),
            ])
            .arg("--graph")
            .arg(file)
            .env("PYTHONPATH", &package)
            .output()
            .expect("Python runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let calls = printed["calls"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    Overhead {
        calls,
        packing: printed["packing"].as_f64().expect("seconds"),
    }
}
