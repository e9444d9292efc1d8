//! The program says what to run if something is missing.

use std::io::BufRead;

use hlorank_tests::prelude::*;

/// Maximum wait for background work on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn server() -> Command {
    let mut command = program("hlorank-server");
    command.args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    command
        .current_dir(repository("."))
        .env("RUST_BACKTRACE", "0");
    command
}

/// Returns standard error of a server that must not start.
fn refusal(arguments: &[&str]) -> String {
    let output = server().args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Copies the repository's artifacts, so that a test may corrupt them.
fn copied_registry() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let from = repository("models/registry/.");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(copy.path())
        .status()
        .unwrap();
    assert!(copied.success());
    copy
}

/// Returns standard error of a server that is started in a folder, without settings from the environment.
fn refusal_in(folder: &Path, arguments: &[&str]) -> String {
    let mut server = server();
    server
        .current_dir(folder)
        .env_remove("HLORANK_ONNXRUNTIME")
        .env_remove("HLORANK_MODELS");
    let output = server.args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn outside_a_checkout_a_missing_library_is_reported_with_its_whole_path_and_what_sets_it() {
    let folder = tempfile::tempdir().unwrap();
    let default = folder.path().join("target/onnxruntime/libonnxruntime.so");
    let relative = folder.path().join("no/such/library.so");
    for (arguments, path) in [
        (&[][..], default),
        (&["--onnxruntime", "no/such/library.so"], relative),
    ] {
        let refusal = refusal_in(folder.path(), arguments);
        let path = format!("`{}`", path.display());
        says!(
            refusal,
            &path,
            "No such file",
            "--onnxruntime",
            "HLORANK_ONNXRUNTIME",
            "make setup"
        );
    }
}

#[test]
fn outside_a_checkout_a_missing_model_folder_is_reported_with_its_whole_path_and_what_sets_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = onnxruntime().canonicalize().unwrap();
    let library = ["--onnxruntime", library.to_str().unwrap()];
    for (arguments, path) in [
        (&[][..], "models/registry"),
        (&["--models", "no/such"], "no/such"),
    ] {
        let refusal = refusal_in(folder.path(), &[&library, arguments].concat());
        let path = format!("`{}`", folder.path().join(path).display());
        says!(
            refusal,
            &path,
            "No such file",
            "--models",
            "HLORANK_MODELS",
            "checkout"
        );
    }
}

#[test]
fn a_missing_artifact_is_reported() {
    let empty = tempfile::tempdir().unwrap();
    std::fs::create_dir(empty.path().join("tiles")).unwrap();
    let refusal = refusal(&["--models", empty.path().to_str().unwrap()]);
    says!(refusal, "no model could be loaded", "--models");
}

#[test]
fn an_artifact_whose_digest_does_not_hold_is_reported() {
    let copy = copied_registry();
    let versions = std::fs::read_dir(copy.path().join("tile-iree-cpu")).unwrap();
    for version in versions.map(|entry| entry.unwrap().path()) {
        let head = version.join("head.onnx");
        let mut bytes = std::fs::read(&head).unwrap();
        bytes[0] ^= 1;
        std::fs::write(&head, bytes).unwrap();
    }
    let refusal = refusal(&["--models", copy.path().to_str().unwrap()]);
    says!(refusal, "tile-iree-cpu/", "head.onnx has SHA-256");
}

#[test]
fn onnx_runtime_reports_nothing_of_its_use() {
    let home = tempfile::tempdir().unwrap();
    let mut server = server()
        .env_remove("ORT_DISABLE_TELEMETRY")
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_serving(&mut server);
    server.kill().unwrap();
    server.wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(
        left.is_empty(),
        "a device id and a queue of events: {left:?}"
    );
}

#[test]
fn freed_memory_is_given_back_by_the_same_thresholds_if_telemetry_is_turned_off_already() {
    // The image, the wheel and the manifests turn it off, a shell usually does not.
    for preset in [Some("1"), None] {
        let mut program = server();
        program.arg("--workers=3");
        match preset {
            Some(value) => program.env("ORT_DISABLE_TELEMETRY", value),
            None => program.env_remove("ORT_DISABLE_TELEMETRY"),
        };
        let mut server = program.stderr(Stdio::piped()).spawn().unwrap();
        until_serving(&mut server);
        let variables = std::fs::read(format!("/proc/{}/environ", server.id())).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        let variables: Vec<_> = variables.split(|&byte| byte == 0).collect();
        for variable in [
            "ORT_DISABLE_TELEMETRY=1",
            "MALLOC_MMAP_THRESHOLD_=4194304",
            "MALLOC_TRIM_THRESHOLD_=8388608",
            "MALLOC_ARENA_MAX=3",
        ] {
            assert!(
                variables.contains(&variable.as_bytes()),
                "{variable} is missing if telemetry is preset to {preset:?}"
            );
        }
    }
}

#[test]
fn threads_that_load_models_yield_to_those_that_answer_calls_once_there_are_calls() {
    let mut server = server().stderr(Stdio::piped()).spawn().unwrap();
    until_serving(&mut server);
    let started = Instant::now();
    loop {
        let (background, others): (Vec<_>, Vec<_>) = priorities(server.id())
            .into_iter()
            .partition(|(name, _)| is_background(name));
        assert!(others.iter().all(|(_, nice)| *nice == 0), "{others:?}");
        let yielding = background.iter().filter(|(_, nice)| *nice > 0).count();
        // The loader, and one thread that checks models for each worker.
        if yielding >= 2 && yielding == background.len() {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{background:?}");
        thread::sleep(Duration::from_millis(10));
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn is_background(thread: &str) -> bool {
    // The kernel keeps only the first 15 bytes of a name.
    ["model-loader", "compute-backgro"].contains(&thread)
}

/// Returns the names and the nice values of the threads of a process.
fn priorities(process: u32) -> Vec<(String, i64)> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    // Threads that end meanwhile cannot be read.
    let read = |folder: PathBuf| std::fs::read_to_string(folder.join("stat")).ok();
    let stats = threads.filter_map(|thread| read(thread.unwrap().path()));
    stats
        .map(|stat| {
            let (start, fields) = stat.rsplit_once(") ").unwrap();
            let name = start.split_once('(').unwrap().1.to_owned();
            // Nice is field 19 of proc_pid_stat(5); two fields come before this part.
            (name, fields.split(' ').nth(16).unwrap().parse().unwrap())
        })
        .collect()
}

/// Reads the log until calls are accepted, and returns its lines.
fn until_serving(server: &mut std::process::Child) -> Vec<String> {
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut lines = Vec::new();
    while !lines
        .last()
        .is_some_and(|line: &String| line.contains("serving address"))
    {
        lines.push(
            log.next()
                .unwrap_or_else(|| panic!("the server stopped: {lines:?}"))
                .unwrap(),
        );
    }
    lines
}
