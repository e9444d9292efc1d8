//! Signals that end the server while it is busy: a second SIGTERM or SIGINT, one before it serves, and one without time
//! to drain. None of them crashes it. Two in a row are one.

use std::os::unix::process::ExitStatusExt as _;

use hlorank_tests::prelude::*;
use rustix::process::{Signal, kill_process};

use super::{
    calls::{Question, ask, ended_well, pid, start, until_in_progress},
    frozen::Frozen,
};

/// Maximum time of an immediate exit on a busy machine. The drain time is a minute, and the calls in progress take
/// longer.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Sends the first signal once, and the second until the server ends: signals soon after the first are ignored.
async fn stop_twice(first: Signal, second: Signal) -> Stopped {
    let server = start(&["--drain-seconds=60"]);
    let _frozen = Frozen::in_a_stream(&server);
    busy(&server, 3).await;
    let process = pid(server.id());
    kill_process(process, first).unwrap();
    server.lines(1, with_message("stopping")).await;
    let signalled = Instant::now();
    let insist = async || loop {
        kill_process(process, second).unwrap();
        sleep(Duration::from_millis(50)).await;
    };
    tokio::select! {
        stopped = server.stopped(signalled) => stopped,
        () = insist() => unreachable!(),
    }
}

/// Starts this number of calls, and waits until the compute threads are busy with them.
async fn busy(server: &ServerProcess, calls: u8) {
    for _ in 0..2 {
        let mut client = server.cost_model().await;
        tokio::spawn(async move { ask(&mut client, Question::new(90, 100_000)).await });
    }
    until_in_progress(server, calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_server_at_once_and_says_so() {
    let (term, int) = (Signal::TERM, Signal::INT);
    for (first, second, code) in [(term, term, 143), (int, int, 130), (term, int, 130)] {
        let Stopped { status, took, log } = stop_twice(first, second).await;
        assert_eq!(status.code(), Some(code), "{log}");
        assert!(took < AT_ONCE, "{took:?}");
        says!(log, "stopping at once, for a second signal");
    }
}

/// `timeout` and Ctrl-C send one request to stop as two signals in a row. Two different ones never merge.
#[tokio::test(flavor = "multi_thread")]
async fn two_signals_in_a_row_are_one_and_lose_no_call() {
    for second in [Signal::TERM, Signal::INT] {
        let server = start(&["--drain-seconds=60"]);
        let mut client = server.cost_model().await;
        let call = tokio::spawn(async move { ask(&mut client, Question::new(60, 4_000)).await });
        until_in_progress(&server, 1).await;
        let (process, signalled) = (pid(server.id()), Instant::now());
        kill_process(process, Signal::TERM).unwrap();
        kill_process(process, second).unwrap();
        assert_eq!(call.await.unwrap().unwrap().len(), 4_000);
        let stopped = server.stopped(signalled).await;
        assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
        assert!(!stopped.log.contains("second signal"), "{}", stopped.log);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_time_to_drain_ends_with_its_threads_at_work() {
    for _ in 0..3 {
        let server = start(&["--drain-seconds=0"]);
        busy(&server, 2).await;
        let stopped = ended_well(server).await;
        assert!(stopped.took < AT_ONCE, "{:?}", stopped.took);
    }
}

#[test]
fn a_signal_while_models_are_loaded_ends_the_server_at_once() {
    let mut ended = 0;
    for wait in (0..12).map(|step| Duration::from_millis(30 * step)) {
        let mut server = server_program().stderr(Stdio::null()).spawn().unwrap();
        // The signal arrives at any stage of the start.
        thread::sleep(wait);
        let signalled = Instant::now();
        kill_process(pid(server.id()), Signal::TERM).unwrap();
        let status = server.wait().unwrap();
        assert!(signalled.elapsed() < AT_ONCE, "{:?}", signalled.elapsed());
        // Before the server handles signals, they end it like any program.
        let by_default = status.signal() == Some(Signal::TERM.as_raw());
        assert!(
            status.code() == Some(0) || by_default,
            "{status:?} after {wait:?}"
        );
        ended += usize::from(status.code() == Some(0));
    }
    assert!(ended > 0, "no signal came late enough");
}
