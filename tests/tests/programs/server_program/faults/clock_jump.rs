//! The wall clock jumps: printed times jump with it, and nothing else is affected.

use hlorank_tests::prelude::*;

use super::calls::{MODEL, PATIENCE, Question, ask_as, ended_well};

const QUESTION: Question = Question::new(8, 20);
const HOUR: i64 = 3_600;

/// Builds the library that shifts the clock. Returns `None` if there is no C compiler.
fn shim(folder: &Path) -> Option<PathBuf> {
    let source = repository("tests/tests/programs/server_program/faults/clock_offset.c");
    assert!(source.exists(), "{}", source.display());
    let library = folder.join("clock_offset.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    if built.is_ok_and(|built| built.success()) {
        return Some(library);
    }
    skipped("a C compiler, `cc`");
    None
}

/// Returns the date and hour of the log line of a call.
async fn hour(server: &ServerProcess, id: &str) -> String {
    let lines = server
        .lines(1, |line: &Value| line["span"]["request_id"] == id)
        .await;
    lines[0]["timestamp"].as_str().unwrap()[..13].to_owned()
}

#[test]
fn a_server_does_not_start_while_the_clock_shows_a_time_before_1970() {
    let folder = tempfile::tempdir().unwrap();
    let Some(shim) = shim(folder.path()) else {
        return;
    };
    let offset = folder.path().join("offset");
    fs::write(&offset, "-100000000000").unwrap();
    let output = server_program()
        .args(["--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"])
        .env("LD_PRELOAD", shim)
        .env("CLOCK_OFFSET", &offset)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    says!(
        said,
        "the clock of the system shows a time before 1970",
        "set it"
    );
    assert!(!said.contains("panic"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_and_reloads_do_not_heed_the_wall_clock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(shim) = shim(folder.path()) else {
        return;
    };
    let offset = folder.path().join("offset");
    // The file is replaced atomically because it is read at any time.
    let jump = |seconds: i64| {
        fs::write(folder.path().join("new"), seconds.to_string()).unwrap();
        fs::rename(folder.path().join("new"), &offset).unwrap();
    };
    jump(0);
    let artifacts = Artifacts::all();
    let mut program = server_program();
    program.env("LD_PRELOAD", shim).env("CLOCK_OFFSET", &offset);
    program.args([&artifacts.flag(), "--poll-seconds=0.3"]);
    let server = ServerProcess::run(program);
    let models = server.client().await;
    let mut version = models.get_model(MODEL, None).await.unwrap().version;
    let mut client = server.cost_model().await;
    let answer = ask_as(&mut client, QUESTION, "before").await.unwrap();
    let mut hours = vec![hour(&server, "before").await];

    for hours_off in [6, -18, 30] {
        jump(hours_off * HOUR);
        // A deadline that would expire if it depended on the wall clock, and one that does expire.
        let mut patient = server.patient();
        let within = |timeout: &str, question: Question| {
            with_headers(question.request(), &[("grpc-timeout", timeout)])
        };
        let answered = patient
            .rank_configs(within("30S", QUESTION))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(bits(&answered.scores), answer);
        let started = Instant::now();
        let long = Question::new(90, 20_000);
        let ended = patient
            .rank_configs(within("200m", long))
            .await
            .unwrap_err();
        assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended:?}");
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
        // Polling continues, and a new version is checked by monotonic time.
        version += 1;
        artifacts.publish(MODEL, version, |_| ());
        server.until(MODEL, version, ModelState::Serving).await;
        let id = format!("after{hours_off}");
        assert_eq!(ask_as(&mut client, QUESTION, &id).await.unwrap(), answer);
        hours.push(hour(&server, &id).await);
    }
    let stopped = ended_well(server).await;
    let distinct = hours
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    assert_eq!(
        distinct,
        hours.len(),
        "the log has the wall clock's times: {hours:?}"
    );
    assert!(!stopped.log.contains("\"ERROR\""), "{}", stopped.log);
}
