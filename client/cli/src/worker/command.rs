//! Runs the command that measures one configuration.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use hlorank_client::{MeasuredOutcome, v1::MeasurementFailure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Deserialize;
use tokio::{task::spawn_blocking, time::timeout};

use crate::error::CommandError;

/// A command that runs, in a process group of its own.
pub(super) struct MeasuringCommand {
    program: String,
    group: Arc<Group>,
    child: Child,
}

/// A process group, which ends with its first process.
struct Group {
    leader: Pid,
    /// Whether the first process was waited for, so that its number may be of another.
    has_ended: Mutex<bool>,
}

/// What a command may print instead of a number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    seconds: Option<f64>,
    repeats: Option<u32>,
    failure: Option<MeasurementFailure>,
}

/// The variable with the configuration as JSON.
const CONFIGURATION: &str = "HLORANK_CONFIGURATION";

/// Maximum length of a line that is read.
const MAX_LINE_BYTES: u64 = 64 << 10;

impl MeasuringCommand {
    /// Starts a command with a configuration on its standard input and in its environment.
    pub(super) fn start(command: &[String], configuration: &str) -> Result<Self, CommandError> {
        let program = command[0].clone();
        let failed = |error: io::Error| CommandError::input(&program, error);
        let mut child = Command::new(&program)
            .args(&command[1..])
            .env(CONFIGURATION, configuration)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let leader = number.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        if let Some(mut input) = child.stdin.take() {
            let text = format!("{configuration}\n");
            // A command need not read it, and a pipe holds it, so that this does not wait for the command unless it is very long.
            thread::spawn(move || input.write_all(text.as_bytes()));
        }
        Ok(Self {
            program,
            group: Arc::new(Group {
                leader,
                has_ended: Mutex::default(),
            }),
            child,
        })
    }

    /// Waits until the command ends, at most for a time. Fails if it prints nothing that can be reported.
    pub(super) async fn outcome(
        self,
        limit: Option<Duration>,
    ) -> Result<MeasuredOutcome, CommandError> {
        let Self {
            program,
            group,
            mut child,
        } = self;
        let _kill = KillOnDrop(Arc::clone(&group));
        let output = child.stdout.take().expect("it is piped");
        let reading = spawn_blocking(move || last_line(output));
        let ended = Arc::clone(&group);
        let waiting = spawn_blocking(move || ended.wait(&mut child));
        let waited = match limit {
            Some(limit) => timeout(limit, waiting).await,
            None => Ok(waiting.await),
        };
        let Ok(waited) = waited else {
            return Ok(MeasuredOutcome::Failed(MeasurementFailure::Timeout));
        };
        let has_succeeded = waited.unwrap_or_else(|error| Err(error.into()))?;
        let line = reading.await.unwrap_or_default();
        match read_outcome(&line) {
            Some(failed @ MeasuredOutcome::Failed(_)) => Ok(failed),
            _ if !has_succeeded => Ok(MeasuredOutcome::Failed(MeasurementFailure::Crash)),
            Some(measured) => Ok(measured),
            None => Err(CommandError::input(
                program,
                format!(
                    "printed {line:?} at last, expected seconds, {{\"seconds\": ..., \"repeats\": ...}} or {{\"failure\": \"compile\", \
                     \"crash\", \"wrong-result\" or \"timeout\"}}"
                ),
            )),
        }
    }
}

/// Ends the group of a command that is no longer waited for.
struct KillOnDrop(Arc<Group>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Group {
    /// Waits for the first process, and ends all that it started. Returns whether it succeeded.
    fn wait(&self, child: &mut Child) -> io::Result<bool> {
        // Until it is waited for, the number of the group belongs to nobody else.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.leader), ended)?;
        self.kill();
        let mut has_ended = self
            .has_ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *has_ended = true;
        Ok(child.wait()?.success())
    }

    fn kill(&self) {
        let has_ended = self
            .has_ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*has_ended {
            // An error means that nobody is left.
            let _ = kill_process_group(self.leader, Signal::KILL);
        }
    }
}

/// Returns the last line that is not empty.
fn last_line(output: impl io::Read) -> String {
    let mut output = BufReader::new(output);
    let mut last = String::new();
    loop {
        let mut line = Vec::new();
        match output
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return last,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            line.trim().clone_into(&mut last);
        }
    }
}

/// Reads what a command printed; `None` if it is no outcome.
fn read_outcome(line: &str) -> Option<MeasuredOutcome> {
    let printed = match line.parse() {
        Ok(seconds) => Printed {
            seconds: Some(seconds),
            repeats: None,
            failure: None,
        },
        Err(_) => serde_json::from_str(line).ok()?,
    };
    match (printed.failure, printed.seconds) {
        (Some(failure), None) => Some(MeasuredOutcome::Failed(failure)),
        (None, Some(seconds)) if seconds > 0.0 && seconds.is_finite() => {
            Some(MeasuredOutcome::Time {
                seconds,
                repeats: printed.repeats.unwrap_or(1),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_outcome() {
        let read = |output: &str| read_outcome(&last_line(output.as_bytes()));
        let time = |seconds, repeats| Some(MeasuredOutcome::Time { seconds, repeats });
        assert_eq!(read("warming up\n1.5e-3\n\n"), time(1.5e-3, 1));
        assert_eq!(read("{\"seconds\": 2, \"repeats\": 5}"), time(2.0, 5));
        let failed = Some(MeasuredOutcome::Failed(MeasurementFailure::WrongResult));
        assert_eq!(read("{\"failure\": \"wrong-result\"}"), failed);
        for wrong in [
            "",
            "done",
            "-1",
            "inf",
            "NaN",
            "{}",
            "{\"failure\": \"other\"}",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
