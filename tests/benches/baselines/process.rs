//! A process of a system in Python: started, watched and stopped.

use hlorank_tests::prelude::*;

/// Maximum time until a system is ready.
pub(crate) const START: Duration = Duration::from_mins(1);
const STOP: Duration = Duration::from_secs(10);

/// Process that is stopped when it is dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a process whose output is written to a file of this name.
    pub(crate) fn start(mut command: Command, name: &str) -> Self {
        let log = repository("target/baselines").join(format!("{name}.log"));
        let file = File::create(&log).expect("target can be written");
        let child = command
            .stdout(file.try_clone().expect("an open file"))
            .stderr(file)
            .spawn();
        let child =
            child.unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
        Self { child, log }
    }

    /// Waits until the process prints `serving PORT`, and returns the port.
    pub(crate) fn port(&self) -> u16 {
        let started = Instant::now();
        loop {
            let printed = fs::read_to_string(&self.log).expect("the log is text");
            let mut ports = printed
                .lines()
                .filter_map(|line| line.strip_prefix("serving "));
            if let Some(port) = ports.next() {
                return port.parse().expect("a port");
            }
            assert!(
                started.elapsed() < START,
                "it does not start; see {}",
                self.log.display()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM also ends its workers.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let stopped = Instant::now();
        while stopped.elapsed() < STOP && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
