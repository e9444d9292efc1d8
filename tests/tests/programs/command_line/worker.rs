//! `hlorank worker`: processes that measure one search with a command.

use hlorank_tests::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

use crate::command_line::running::CommandLine;

const TARGET: &str = "--target=a board";

/// How long a lease lasts: short, so that others soon have what a killed worker leaves.
const TTL: &str = "--ttl=5s";

/// Maximum wait for something that another process does.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that keeps measurements, and a folder with a space.
async fn start(space: &str) -> (TestServer, CommandLine, TempDir) {
    let (folder, server, _) = storing_server(&[]).await;
    let command_line = CommandLine::new(&server);
    command_line.write("space.json", space);
    (server, command_line, folder)
}

/// Starts a worker with these options that runs a command of the shell.
fn worker(command_line: &CommandLine, options: &[&str], script: &str) -> Child {
    let space = ["worker", "--space=space.json", TARGET];
    let command = ["--", "sh", "-c", script];
    let mut command = command_line.command(&[&space[..], options, &command].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Returns the exit code of a worker, and everything that it printed.
fn finish(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into())
}

/// Runs a worker that measures whatever is left, and returns what it printed.
fn measure_the_rest(command_line: &CommandLine) -> String {
    let (code, text) = finish(worker(command_line, &[], "echo 0.002"));
    assert_eq!(code, Some(0), "{text}");
    text
}

async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}

/// How each measurement that a server keeps failed.
async fn kept(server: &TestServer) -> Vec<i32> {
    let client = server.client().await;
    let page = client
        .list_measurements(&ListMeasurementsRequest::default())
        .await;
    let graphs = page.unwrap().graphs.into_iter();
    graphs.flat_map(|graph| graph.failures).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_workers_measure_every_configuration_of_a_space_once() {
    let space = r#"{"name": "gemm", "parameters": {"block": [16, 32, 64], "order": ["ij", "ji"], "unroll": [false, true]}}"#;
    let (server, command_line, folder) = start(space).await;
    let measured = folder.path().join("measured");
    let script = format!(
        "read line; [ \"$line\" = \"$HLORANK_CONFIGURATION\" ] && echo \"$line\" >> {}; sleep 0.1; \
         case \"$line\" in *64*ji*) echo '{{\"failure\": \"compile\"}}';; *) echo '{{\"seconds\": 0.002, \"repeats\": 3}}';; esac",
        measured.display()
    );
    let workers = [(); 4].map(|()| worker(&command_line, &[TTL], &script));
    for child in workers {
        let (code, text) = finish(child);
        assert_eq!(code, Some(0), "{text}");
        says!(text, "everything is measured");
    }
    let lines = fs::read_to_string(&measured).unwrap();
    let distinct: BTreeSet<&str> = lines.lines().collect();
    assert_eq!((lines.lines().count(), distinct.len()), (12, 12));
    let compile = i32::from(MeasurementFailure::Compile);
    let kept = kept(&server).await;
    let failed = kept.iter().filter(|failure| **failure == compile);
    assert_eq!((kept.len(), failed.count()), (12, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_told_to_stop_gives_back_and_leaves_no_process() {
    let space = r#"{"name": "gemm", "parameters": {"block": [16]}}"#;
    let (_server, command_line, folder) = start(space).await;
    let started = folder.path().join("started");
    let script = format!("echo $$ > {}; sleep 600", started.display());
    let child = worker(&command_line, &[TTL], &script);
    let number = || {
        fs::read_to_string(&started)
            .ok()?
            .trim()
            .parse::<u32>()
            .ok()
    };
    until(|| number().is_some()).await;
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let (code, text) = finish(child);
    assert_eq!(code, Some(1), "{text}");
    says!(text, "given back");
    let process = format!("/proc/{}", number().unwrap());
    until(|| !Path::new(&process).exists()).await;
    // Another worker has it at once, and not after the time of a lease.
    let begun = Instant::now();
    let text = measure_the_rest(&command_line);
    assert!(begun.elapsed() < Duration::from_secs(4), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_kills_its_workers_has_crashed_after_two() {
    let space = r#"{"name": "deadly", "parameters": {"block": [16]}}"#;
    let (server, command_line, _folder) = start(space).await;
    for _ in 0..2 {
        let (code, text) = finish(worker(&command_line, &[TTL], "kill -9 $PPID"));
        assert_eq!(code, None, "{text}");
    }
    says!(measure_the_rest(&command_line), "0 configurations measured");
    assert_eq!(kept(&server).await, [i32::from(MeasurementFailure::Crash)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_what_it_measured_while_the_server_was_away() {
    let space = r#"{"name": "gemm", "parameters": {"block": [16, 32, 64]}}"#;
    let (server, command_line, folder) = start(space).await;
    let (started, go) = (folder.path().join("started"), folder.path().join("go"));
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo 0.002",
        started.display(),
        go.display()
    );
    let child = worker(&command_line, &[TTL], &script);
    until(|| started.exists()).await;
    let listen = server.endpoint().replace("http://", "--listen=");
    server.stop().await;
    fs::write(&go, "").unwrap();
    sleep(Duration::from_secs(1)).await;
    let server = TestServer::start_with(&[&store_flag(folder.path()), &listen]).await;
    let (code, text) = finish(child);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(kept(&server).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_is_checked_and_a_slow_one_is_killed() {
    let space = r#"{"name": "gemm", "parameters": {"block": [16]}}"#;
    let (server, command_line, _folder) = start(space).await;
    let (code, text) = finish(worker(&command_line, &[TTL], "echo done"));
    assert_eq!(code, Some(2), "{text}");
    says!(text, "printed \"done\" at last");
    assert!(kept(&server).await.is_empty());
    let slow = "sleep 600 & sleep 600";
    let (code, text) = finish(worker(&command_line, &["--time-limit=200ms"], slow));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(
        kept(&server).await,
        [i32::from(MeasurementFailure::Timeout)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_measure_a_space_that_nobody_can_list() {
    let values: Vec<u32> = (1..=64).collect();
    let parameters: BTreeMap<_, _> = (0..10)
        .map(|number| (format!("p{number}"), &values))
        .collect();
    let space = json!({
        "name": "options",
        "parameters": parameters,
        "constraints": [{"factors": ["p0", "p1"], "most": 256}],
    });
    let (server, command_line, folder) = start(&space.to_string()).await;
    let measured = folder.path().join("measured");
    let script = format!(
        "read line; echo \"$line\" >> {}; echo 0.002",
        measured.display()
    );
    let workers = [(); 2].map(|()| worker(&command_line, &["--budget=6"], &script));
    for worker in workers {
        let (code, text) = finish(worker);
        assert_eq!(code, Some(0), "{text}");
        says!(text, "the budget is spent");
    }
    let lines = fs::read_to_string(&measured).unwrap();
    let lines: BTreeSet<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for line in lines {
        let one: Value = serde_json::from_str(line).unwrap();
        let [first, second] = ["p0", "p1"].map(|name| one[name].as_u64().unwrap());
        assert!(first * second <= 256, "{line}");
    }
    let unspecified = i32::from(MeasurementFailure::Unspecified);
    assert_eq!(kept(&server).await, [unspecified; 6], "all have run times");
}
