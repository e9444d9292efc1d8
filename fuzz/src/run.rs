//! Runs a target: changes inputs, watches what reading them costs, and keeps what broke a promise.

use std::{
    any::Any,
    collections::HashSet,
    fmt, fs,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    os::unix::fs::FileExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use rustix::{
    process::{Resource, Rlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

use crate::{Environment, environment::corpus, mutate::Mutate};

/// What reads one kind of input.
pub struct Target {
    /// Name of its folder of inputs.
    pub name: &'static str,
    /// Changes an input.
    pub mutate: Mutate,
    /// Reads an input and tells what came of it, in a few words without numbers; panics where a promise is broken.
    pub read: fn(&[u8]) -> String,
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct Report {
    /// The target.
    pub target: &'static str,
    /// What all chance came from.
    pub seed: u64,
    /// Inputs that were read.
    pub executions: u64,
    /// Different outcomes among them.
    pub outcomes: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// Processor time of the input that took longest.
    pub slowest: Duration,
}

/// Bytes that an input may have: enough for every structure, and little enough to read thousands a second.
const MAX_BYTES: usize = 1 << 16;

/// Processor time that any such input may take.
const MAX_TIME: Duration = Duration::from_secs(1);

/// After so long an input counts as one that never ends.
const HANGS: Duration = Duration::from_mins(1);

/// Bytes of memory that the process may ever have, and may ask for: targets share it.
const MAX_RESIDENT: u64 = 1 << 30;
const MAX_ADDRESSES: u64 = 4 << 30;

/// An input that took so long may have taken memory too.
const LONG: Duration = Duration::from_millis(20);

/// Inputs with outcomes of their own that are kept.
const MAX_KEPT: usize = 2000;

/// How often a long run says how far it is.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// Runs a target for as long as the environment says, from its corpus on.
///
/// # Panics
/// At the first input that breaks a promise; it is written to a file, whose path is told.
#[must_use]
pub fn run(target: &Target, environment: &Environment) -> Report {
    fs::create_dir_all(&environment.failures).expect("a folder for failures can be made");
    let limit = Rlimit { current: Some(MAX_ADDRESSES), maximum: Some(MAX_ADDRESSES) };
    setrlimit(Resource::As, limit).expect("a limit can be lowered");
    let watch = Watch::new(target, environment);
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch.until_done());
        let ran = catch_unwind(AssertUnwindSafe(|| Run::new(target, environment, &watch).finish()));
        watch.done.store(true, Ordering::Relaxed);
        watching.thread().unpark();
        ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct Run<'a> {
    target: &'a Target,
    environment: &'a Environment,
    watch: &'a Watch,
    random: Rng,
    corpus: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    outcomes: HashSet<u64>,
    report: Report,
}

impl<'a> Run<'a> {
    fn new(target: &'a Target, environment: &'a Environment, watch: &'a Watch) -> Self {
        let seed = environment.seed;
        let report = Report {
            target: target.name,
            seed,
            executions: 0,
            outcomes: 0,
            elapsed: Duration::ZERO,
            slowest: Duration::ZERO,
        };
        // Targets with one seed do not make the same choices.
        let random = Rng::with_seed(seed ^ hash(target.name));
        let (corpus, kept, outcomes) = (Vec::new(), Vec::new(), HashSet::new());
        Self { target, environment, watch, random, corpus, kept, outcomes, report }
    }

    fn finish(mut self) -> Report {
        let started = Instant::now();
        if let Some(path) = &self.environment.input {
            let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            self.execute(input_of(path, bytes));
            return self.report;
        }
        for (_, input) in corpus(self.target.name) {
            self.corpus.push(input.clone());
            self.execute(input);
        }
        let mut told = started;
        while started.elapsed() < self.environment.time {
            let input = self.changed();
            self.execute(input);
            if told.elapsed() > TOLD_EVERY {
                told = Instant::now();
                println!("so far: {}", self.so_far(started));
            }
        }
        self.so_far(started)
    }

    fn so_far(&self, started: Instant) -> Report {
        Report { elapsed: started.elapsed(), outcomes: self.outcomes.len(), ..self.report.clone() }
    }

    /// An input made of one that was there.
    fn changed(&mut self) -> Vec<u8> {
        let mut input = self.chosen().clone();
        let other = self.chosen().clone();
        (self.target.mutate)(&mut input, &other, &mut self.random);
        input.truncate(MAX_BYTES);
        input
    }

    fn chosen(&mut self) -> &Vec<u8> {
        let from = if self.kept.is_empty() || self.random.bool() { &self.corpus } else { &self.kept };
        &from[self.random.usize(..from.len())]
    }

    fn execute(&mut self, input: Vec<u8>) {
        self.watch.begin(&input);
        let before = processor_time();
        let read = catch_unwind(|| (self.target.read)(&input));
        let took = processor_time().saturating_sub(before);
        self.watch.end();
        self.report.executions += 1;
        self.report.slowest = self.report.slowest.max(took);
        let outcome = read.unwrap_or_else(|panic| self.fail(&input, &message(&*panic)));
        if took > LONG && peak_memory() > MAX_RESIDENT {
            self.fail(
                &input,
                &format!("memory grew to {} bytes, at most {MAX_RESIDENT} is promised", peak_memory()),
            );
        }
        if took > MAX_TIME {
            self.fail(
                &input,
                &format!("it took {took:?} of processor time, at most {MAX_TIME:?} is promised"),
            );
        }
        if self.outcomes.insert(hash(&outcome)) {
            self.keep(input);
        }
    }

    fn keep(&mut self, input: Vec<u8>) {
        if self.kept.len() < MAX_KEPT {
            self.kept.push(input);
        } else {
            let place = self.random.usize(..MAX_KEPT);
            self.kept[place] = input;
        }
    }

    fn fail(&self, input: &[u8], what: &str) -> ! {
        let Report { target, seed, executions, .. } = self.report;
        let path = self.environment.failures.join(format!("{target}-{:016x}", hash(input)));
        fs::write(&path, input).expect("a failure can be written");
        panic!(
            "{target}: {what}\nexecution {executions} of seed {seed}; its input is {path}\nagain: HLORANK_FUZZ_INPUT={path} \
             cargo test -p hlorank-fuzz {target}",
            path = path.display()
        );
    }
}

/// Ends the process where an input never ends, and holds the input where the process ends by itself: out of stack,
/// or of memory.
struct Watch {
    target: &'static str,
    /// Begins with how long the input is, since what was longer before is not cut off.
    path: PathBuf,
    file: fs::File,
    began: Instant,
    /// When the input that is being read began, in milliseconds; 0 between inputs.
    since: AtomicU64,
    done: AtomicBool,
}

/// Ends the name of a file with the input that is being read.
const RUNNING: &str = "running";

impl Watch {
    fn new(target: &Target, environment: &Environment) -> Self {
        let path = environment.failures.join(target.name).with_extension(RUNNING);
        let file = fs::File::create(&path).expect("a file can be made");
        let (since, done) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { target: target.name, path, file, began: Instant::now(), since, done }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn begin(&self, input: &[u8]) {
        let written = [&(input.len() as u64).to_le_bytes()[..], input].concat();
        self.file.write_all_at(&written, 0).expect("an input can be written");
        self.since.store(self.now(), Ordering::Relaxed);
    }

    fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    fn until_done(&self) {
        while !self.done.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_secs(1));
            let since = self.since.load(Ordering::Relaxed);
            if since > 0 && u128::from(self.now() - since.min(self.now())) > HANGS.as_millis() {
                eprintln!("{}: an input takes more than {HANGS:?}: {}", self.target, self.path.display());
                process::abort();
            }
        }
    }
}

/// What a file holds: all of it is an input, unless it was being read when the process ended.
fn input_of(path: &Path, bytes: Vec<u8>) -> Vec<u8> {
    if path.extension().is_none_or(|extension| extension != RUNNING) {
        return bytes;
    }
    let (length, rest) = bytes.split_first_chunk::<8>().expect("a length");
    let length = usize::try_from(u64::from_le_bytes(*length)).expect("a length");
    rest[..length].to_vec()
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, seed, executions, outcomes, elapsed, slowest } = self;
        let rate = *executions as f64 / elapsed.as_secs_f64();
        write!(
            formatter,
            "fuzz {target}: {executions} executions in {:.0} s ({rate:.0} a second), {outcomes} outcomes, the slowest \
             {slowest:.1?}; seed {seed}",
            elapsed.as_secs_f64()
        )
    }
}

fn hash(value: impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// What this thread has computed, which other processes do not lengthen.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The most memory that the process ever had, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok())
        .map_or(0, |kilobytes: u64| kilobytes << 10)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::mutate_json;

    /// Runs a target, on the inputs of the one for manifests, that is expected to fail; gives what it says and the
    /// input that it kept.
    fn broken(read: fn(&[u8]) -> String) -> (String, Vec<u8>) {
        let folder = tempfile::tempdir().expect("a folder");
        let failures = folder.path().to_owned();
        let environment = Environment { time: Duration::from_mins(1), seed: 1, input: None, failures };
        let target = Target { name: "manifest", mutate: mutate_json, read };
        let panic = catch_unwind(|| run(&target, &environment)).expect_err("a broken promise");
        let kept =
            fs::read_dir(folder.path()).expect("a folder").filter_map(|entry| Some(entry.ok()?.path()));
        let kept = kept.into_iter().find(|path| path.extension().is_none()).expect("an input");
        (message(&*panic), fs::read(kept).expect("an input"))
    }

    #[test]
    fn an_input_that_breaks_a_promise_is_found_and_kept() {
        let (message, input) = broken(|input| {
            assert!(!input.contains(&b'\\'), "a backslash");
            String::new()
        });
        assert!(message.starts_with("manifest: a backslash") && message.contains("of seed 1"), "{message}");
        assert!(input.contains(&b'\\'));
    }

    /// One after the other, since the process has one peak of memory.
    #[test]
    fn inputs_that_take_too_long_or_too_much_memory_are_found() {
        let (message, _) = broken(|_| {
            let started = processor_time();
            while processor_time().saturating_sub(started) < MAX_TIME + LONG {}
            String::new()
        });
        assert!(message.contains("of processor time, at most 1s is promised"), "{message}");
        let (message, _) =
            broken(|_| vec![1_u8; usize::try_from(MAX_RESIDENT + 1).expect("64 bits")].len().to_string());
        assert!(message.contains("memory grew to"), "{message}");
    }
}
