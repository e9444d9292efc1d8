//! Runs a target without coverage guidance, on any toolchain: on its corpus, then on random changes of it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{
    Target,
    mutate::{Mutator, change_bytes},
};

/// How long a target runs, and from which seed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// How long random changes are tried after the corpus.
    pub time: Duration,
    /// Seed of all random choices.
    pub seed: u64,
    /// Folder of the file that holds the input being read; the file stays there if the input breaks a promise.
    pub folder: PathBuf,
    /// Maximum resident memory of the process in bytes, which the targets share.
    pub max_resident: u64,
}

/// Maximum length of an input in bytes: enough for every structure, and thousands are read in a second.
const MAX_BYTES: usize = 1 << 16;

/// Maximum address space of the process in bytes: an allocation beyond it ends the process.
const MAX_ADDRESSES: u64 = 4 << 30;

/// Processor time after which resident memory is checked.
const LONG: Duration = Duration::from_millis(20);

impl Replay {
    /// Reads `HLORANK_FUZZ_SECONDS` (1 by default) and `HLORANK_FUZZ_SEED` (random by default).
    ///
    /// # Panics
    /// If a variable is not a whole number.
    #[must_use]
    pub fn from_environment() -> Self {
        let number = |name: &str| {
            let value = env::var(name).ok()?;
            Some(
                value
                    .parse()
                    .unwrap_or_else(|_| panic!("{name} is {value:?}, expected a whole number")),
            )
        };
        Self {
            time: Duration::from_secs(number("HLORANK_FUZZ_SECONDS").unwrap_or(1)),
            seed: number("HLORANK_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..)),
            folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz"),
            max_resident: 1 << 30,
        }
    }

    /// Runs a target and returns how many inputs it read.
    ///
    /// # Panics
    /// If an input breaks a promise.
    #[must_use]
    pub fn run(&self, target: &Target) -> u64 {
        let limit = Rlimit {
            current: Some(MAX_ADDRESSES),
            maximum: Some(MAX_ADDRESSES),
        };
        setrlimit(Resource::As, limit).expect("a limit can be lowered");
        fs::create_dir_all(&self.folder).expect("a folder for inputs");
        let file = self.folder.join(target.name).with_extension("running");
        let running = Running {
            file,
            max_resident: self.max_resident,
        };
        let corpus = corpus(target.name);
        for input in &corpus {
            running.check(target, input);
        }
        let mut mutator = Mutator {
            random: Rng::with_seed(self.seed),
            change_bytes,
        };
        let (started, mut inputs) = (Instant::now(), corpus.len() as u64);
        while started.elapsed() < self.time {
            running.check(target, &changed(target, &corpus, &mut mutator));
            inputs += 1;
        }
        println!("fuzz {}: {inputs} inputs, seed {}", target.name, self.seed);
        inputs
    }
}

/// Returns the folder of a target's inputs.
#[must_use]
pub fn corpus_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(corpus_folder(target)).expect("a folder of inputs");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an input").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).expect("an input"))
        .collect()
}

/// Returns an input of the corpus with one change, or a few.
fn changed(target: &Target, corpus: &[Vec<u8>], mutator: &mut Mutator) -> Vec<u8> {
    let mut input = corpus[mutator.random.usize(..corpus.len())].clone();
    for _ in 0..=mutator.random.u8(..4) {
        (target.mutate)(&mut input, mutator);
    }
    input.truncate(MAX_BYTES);
    input
}

/// The file with the input that is being read. It is removed unless the test panics or the process ends.
struct Running {
    file: PathBuf,
    max_resident: u64,
}

impl Running {
    fn check(&self, target: &Target, input: &[u8]) {
        fs::write(&self.file, input).expect("an input can be written");
        let took = target.time(input);
        if took > LONG {
            let peak = peak_memory();
            let limit = self.max_resident;
            assert!(
                peak <= limit,
                "memory grew to {peak} bytes, more than {limit}"
            );
        }
        // After memory, because what takes much memory takes long as well.
        Target::check_time(took);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the input is in {}", self.file.display());
        } else {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Returns the largest resident memory that the process has had, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok())
        .map_or(0, |kilobytes: u64| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use std::{hint::black_box, panic::catch_unwind};

    use super::*;
    use crate::{mutate::mutate_bytes, target::processor_time};

    /// More than the test process holds by itself.
    const MAX_RESIDENT: u64 = 256 << 20;

    /// Runs a target that breaks a promise, and returns its message and the input that is kept.
    fn broken(read: fn(&[u8])) -> (String, Vec<u8>) {
        let folder = tempfile::tempdir().expect("a folder");
        let folder_path = folder.path().to_owned();
        let replay = Replay {
            time: Duration::from_mins(1),
            seed: 1,
            folder: folder_path,
            max_resident: MAX_RESIDENT,
        };
        let target = Target {
            name: "manifest",
            mutate: mutate_bytes,
            read,
        };
        let panic = catch_unwind(|| replay.run(&target)).expect_err("a broken promise");
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        (
            message.expect("a message"),
            fs::read(folder.path().join("manifest.running")).expect("an input"),
        )
    }

    #[test]
    fn an_input_that_breaks_a_promise_is_kept() {
        let (message, input) = broken(|input| assert!(!input.contains(&0xff), "a byte"));
        assert_eq!(message, "a byte");
        assert!(input.contains(&0xff));
    }

    /// In one test, because the process has one peak of memory.
    #[test]
    fn inputs_that_take_too_long_or_too_much_memory_are_found() {
        let (message, _) = broken(|_| {
            let started = processor_time();
            while processor_time().saturating_sub(started) < Target::MAX_TIME * 2 {}
        });
        assert!(
            message.ends_with("of processor time, more than 1s"),
            "{message}"
        );
        let (message, _) = broken(|_| {
            let started = processor_time();
            black_box(vec![
                1_u8;
                usize::try_from(MAX_RESIDENT + 1).expect("64 bits")
            ]);
            // Memory is checked after inputs that take long.
            while processor_time().saturating_sub(started) <= LONG {}
        });
        assert!(message.contains("memory grew to"), "{message}");
    }
}
