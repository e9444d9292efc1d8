//! The wall clock jumps: printed times jump with it, and nothing else is affected.

use hlorank_tests::prelude::*;

use super::calls::{MODEL, PATIENCE, Question, ask_as, ended_well};

const QUESTION: Question = Question::new(8, 20);
const HOUR: i64 = 3_600;

/// The clock of a server, which is off by a number of seconds.
struct Clock(TempDir);

impl Clock {
    /// Builds the library that shifts the clock. Returns `None` if there is no C compiler.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(folder.path().join("clock_offset.so"))
            .arg(repository(
                "tests/tests/programs/server_program/faults/clock_offset.c",
            ))
            .status();
        let Ok(built) = built else {
            skipped("a C compiler, `cc`");
            return None;
        };
        assert!(built.success());
        let clock = Self(folder);
        clock.jump(0);
        Some(clock)
    }

    /// Replaces the file with the offset atomically, because it is read at any time.
    fn jump(&self, seconds: i64) {
        let new = self.0.path().join("new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, self.0.path().join("offset")).unwrap();
    }

    /// Returns a command that runs a server with this clock.
    fn server(&self) -> Command {
        let mut server = server_program();
        server
            .env("LD_PRELOAD", self.0.path().join("clock_offset.so"))
            .env("CLOCK_OFFSET", self.0.path().join("offset"));
        server
    }
}

/// Returns the date and hour of the log line of a call.
async fn hour(server: &ServerProcess, id: &str) -> String {
    let lines = server
        .lines(1, |line| line["span"]["request_id"] == id)
        .await;
    lines[0]["timestamp"].as_str().unwrap()[..13].to_owned()
}

#[test]
fn a_server_does_not_start_while_the_clock_shows_a_time_before_1970() {
    let Some(clock) = Clock::new() else {
        return;
    };
    clock.jump(-100_000_000_000);
    let said = refused_start(&mut clock.server());
    says!(
        said,
        "the clock of the system shows a time before 1970",
        "set it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_and_reloads_do_not_heed_the_wall_clock() {
    let Some(clock) = Clock::new() else {
        return;
    };
    let artifacts = Artifacts::all();
    let mut program = clock.server();
    program.args([&artifacts.flag(), "--poll-seconds=0.3"]);
    let server = ServerProcess::run(program);
    let models = server.client().await;
    let mut version = models.get_model(MODEL, None).await.unwrap().version;
    let mut client = server.cost_model().await;
    let answer = ask_as(&mut client, QUESTION, "before").await.unwrap();
    let mut hours = BTreeSet::from([hour(&server, "before").await]);

    for hours_off in [6, -18, 30] {
        clock.jump(hours_off * HOUR);
        // A deadline that would expire if it depended on the wall clock, and one that does expire.
        let mut patient = server.patient();
        let within = |timeout: &str, question: Question| {
            with_headers(question.request(), &[("grpc-timeout", timeout)])
        };
        let answered = patient.rank_configs(within("30S", QUESTION)).await.unwrap();
        assert_eq!(bits(&answered.into_inner().scores), answer);
        let started = Instant::now();
        let late = within("200m", Question::new(90, 20_000));
        let ended = patient.rank_configs(late).await.unwrap_err();
        assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended:?}");
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
        // Polling continues, and a new version is checked by monotonic time.
        version += 1;
        artifacts.publish(MODEL, version, |_| ());
        server.until(MODEL, version, ModelState::Serving).await;
        let id = format!("after{hours_off}");
        assert_eq!(ask_as(&mut client, QUESTION, &id).await.unwrap(), answer);
        let is_new = hours.insert(hour(&server, &id).await);
        assert!(is_new, "the log has the wall clock's times: {hours:?}");
    }
    let stopped = ended_well(server).await;
    assert!(!stopped.log.contains("\"ERROR\""), "{}", stopped.log);
}
