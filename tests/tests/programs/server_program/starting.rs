//! The program says what to run if something is missing.

use std::net::TcpListener;

use hlorank_tests::prelude::*;

/// Maximum wait for background work on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn outside_a_checkout_what_is_missing_is_reported_with_its_whole_path_and_what_sets_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = format!(
        "--onnxruntime={}",
        onnxruntime().canonicalize().unwrap().display()
    );
    let no_library = ["--onnxruntime", "HLORANK_ONNXRUNTIME", "make setup"];
    let no_models = ["--models", "HLORANK_MODELS", "checkout"];
    for (flags, missing, words) in [
        (vec![], "target/onnxruntime/libonnxruntime.so", no_library),
        (
            vec!["--onnxruntime=no/such/library.so"],
            "no/such/library.so",
            no_library,
        ),
        (vec![&*library], "models/registry", no_models),
        (vec![&*library, "--models=no/such"], "no/such", no_models),
    ] {
        let mut server = server_program();
        server
            .current_dir(folder.path())
            .env_remove("HLORANK_ONNXRUNTIME")
            .env_remove("HLORANK_MODELS");
        let refusal = refused_start(server.args(flags));
        let path = format!("`{}`", folder.path().join(missing).display());
        says!(refusal, path, "No such file", words[0], words[1], words[2]);
    }
}

#[test]
fn an_artifact_whose_digest_does_not_hold_is_reported() {
    let artifacts = Artifacts::all();
    for version in artifacts.versions("tile-iree-cpu") {
        let head = version.join("head.onnx");
        let mut bytes = fs::read(&head).unwrap();
        bytes[0] ^= 1;
        fs::write(&head, bytes).unwrap();
    }
    let refusal = refused_start(server_program().arg(artifacts.flag()));
    says!(
        refusal,
        "tile-iree-cpu/",
        "head.onnx has SHA-256",
        "--models"
    );
}

#[test]
fn an_address_that_is_taken_is_reported_with_its_flag_before_models_are_loaded() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for flag in ["--listen", "--metrics-listen", "--admin-listen"] {
        // The missing models are not reported, because the address is checked first.
        let mut server = server_program();
        server.args(["--models=no/such/folder", &format!("{flag}={address}")]);
        says!(
            refused_start(&mut server),
            format!("cannot listen on {address}: Address already in use"),
            format!("choose another with {flag}")
        );
    }
}

#[test]
fn telemetry_is_off_and_freed_memory_is_given_back_whatever_the_environment_says_of_telemetry() {
    // The image, the wheel and the manifests turn it off, a shell usually does not.
    for preset in [Some("1"), None] {
        let home = tempfile::tempdir().unwrap();
        let mut program = server_program();
        program
            .arg("--workers=3")
            .env("HOME", home.path())
            .env_remove("XDG_CACHE_HOME");
        match preset {
            Some(value) => program.env("ORT_DISABLE_TELEMETRY", value),
            None => program.env_remove("ORT_DISABLE_TELEMETRY"),
        };
        let server = ServerProcess::run(program);
        let variables = fs::read(format!("/proc/{}/environ", server.id())).unwrap();
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
        let kept = fs::read_dir(home.path()).unwrap().count();
        assert_eq!(
            kept, 0,
            "ONNX Runtime keeps a device id and a queue of events"
        );
    }
}

#[test]
fn threads_that_load_models_yield_to_those_that_answer_calls_once_there_are_calls() {
    let server = ServerProcess::start(&[]);
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
}

fn is_background(thread: &str) -> bool {
    // The kernel keeps only the first 15 bytes of a name.
    ["model-loader", "compute-backgro"].contains(&thread)
}

/// Returns the names and the nice values of the threads of a process.
fn priorities(process: u32) -> Vec<(String, i64)> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    // Threads that end meanwhile cannot be read.
    let read = |folder: PathBuf| fs::read_to_string(folder.join("stat")).ok();
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
