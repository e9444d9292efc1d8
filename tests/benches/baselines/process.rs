//! A process of a system: started, watched and stopped.

use hlorank_tests::prelude::*;

/// Maximum time until a system is ready.
pub(crate) const START: Duration = Duration::from_mins(1);
const STOP: Duration = Duration::from_secs(10);
/// Ticks per second, in which Linux counts processor time.
const TICKS_PER_SECOND: u32 = 100;

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

    /// Returns the processor time of the process and its workers, from `/proc/PID/stat`.
    pub(crate) fn processor_time(&self) -> Duration {
        let processes = fs::read_dir("/proc")
            .expect("the benchmark runs on Linux")
            .filter_map(Result::ok);
        let stats =
            processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
        let ticks = stats
            .filter_map(|stat| ticks_of(&stat, self.child.id()))
            .sum::<u32>();
        Duration::from_secs(1) * ticks / TICKS_PER_SECOND
    }

    /// Waits for a line from which `find` returns a value.
    pub(crate) fn wait_for<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            let printed = fs::read_to_string(&self.log).expect("the log is text");
            if let Some(found) = printed.lines().find_map(&find) {
                return found;
            }
            assert!(
                started.elapsed() < START,
                "it does not start; see {}",
                self.log.display()
            );
            std::thread::sleep(Duration::from_millis(50));
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
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the ticks in user and kernel mode if a line of `/proc/PID/stat` is that of this process or of a child of it.
fn ticks_of(stat: &str, process: u32) -> Option<u32> {
    // The name in parentheses may contain anything.
    let (head, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let [Some(id), Some(parent)] = [head.split_whitespace().next(), fields.get(1).copied()] else {
        return None;
    };
    let mine = [id, parent]
        .iter()
        .any(|field| field.parse() == Ok(process));
    mine.then(|| {
        fields[11..13]
            .iter()
            .filter_map(|ticks| ticks.parse::<u32>().ok())
            .sum()
    })
}
