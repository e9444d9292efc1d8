//! Figures and times that benchmarks measure.

use std::{
    env, fs, iter,
    time::{Duration, Instant},
};

use hlorank_client::{Client, RankRequest};
use serde_json::json;

use crate::repository;

/// One line of the table that `make bench` prints.
#[derive(Debug)]
pub struct Figure {
    /// Name of the figure and of its file.
    pub name: String,
    /// Measured value, in `unit`.
    pub value: f64,
    /// Unit, such as `ms` or `x`.
    pub unit: &'static str,
    /// Target of the value.
    pub target: Target,
    /// Description of what was measured, and how.
    pub how: String,
}

/// Target of a value.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Bound, in the figure's unit.
    AtMost(f64),
    /// Bound, in the figure's unit.
    AtLeast(f64),
}

/// Times in milliseconds, ascending.
#[derive(Clone, Debug)]
pub struct Times(Vec<f64>);

/// Returns the parts of a benchmark that its arguments name, or all if they name none.
pub fn chosen_parts<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    // Cargo adds `--bench`.
    let named: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    for name in &named {
        let there = parts.join(", ");
        assert!(parts.contains(&name.as_str()), "no {name} in {there}");
    }
    let is_chosen = |part: &&str| named.is_empty() || named.iter().any(|name| name == part);
    parts.iter().copied().filter(is_chosen).collect()
}

impl Figure {
    /// Makes the figure of the median of some times, which should be at most this number of milliseconds.
    pub fn of_median(name: &str, times: &Times, most: f64, how: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: times.median(),
            unit: "ms",
            target: Target::AtMost(most),
            how: format!(
                "{how}; median of {}, fastest {:.1}, p99 {:.1}",
                times.0.len(),
                times.fastest(),
                times.percentile(99)
            ),
        }
    }

    /// Prints the figure and writes it to `target/figures`.
    pub fn write(&self) {
        let Self {
            name,
            value,
            unit,
            target,
            how,
        } = self;
        let (passed, target) = match target {
            Target::AtMost(most) => (value <= most, format!("<= {most}")),
            Target::AtLeast(least) => (value >= least, format!(">= {least}")),
        };
        println!("{name}: {value:.2} {unit} (target {target}, passed: {passed}); {how}");
        let figure = json!({
            "name": name, "value": value, "unit": unit, "target": target, "passed": passed, "how": how
        });
        let folder = repository("target/figures");
        fs::create_dir_all(&folder).expect("target can be written");
        fs::write(folder.join(format!("{name}.json")), format!("{figure}\n"))
            .expect("target can be written");
    }
}

impl Times {
    /// Sorts times.
    pub fn new(times: impl IntoIterator<Item = Duration>) -> Self {
        let milliseconds = times.into_iter().map(|time| time.as_secs_f64() * 1e3);
        let mut milliseconds: Vec<f64> = milliseconds.collect();
        milliseconds.sort_by(f64::total_cmp);
        Self(milliseconds)
    }

    /// Measures this number of runs.
    pub fn of_runs(runs: usize, mut run: impl FnMut()) -> Self {
        let time = || {
            let start = Instant::now();
            run();
            start.elapsed()
        };
        Self::new(iter::repeat_with(time).take(runs))
    }

    /// Measures this number of calls.
    pub async fn of_calls(calls: usize, mut call: impl AsyncFnMut()) -> Self {
        let mut times = Vec::new();
        for _ in 0..calls {
            let start = Instant::now();
            call().await;
            times.push(start.elapsed());
        }
        Self::new(times)
    }

    /// Measures this number of calls of `RankConfigs` at the client.
    pub async fn of_rankings(calls: usize, client: &Client, request: &RankRequest<'_>) -> Self {
        let call = async || drop(client.rank(request).await.expect("a ranking"));
        Self::of_calls(calls, call).await
    }

    /// Returns the shortest time.
    pub fn fastest(&self) -> f64 {
        self.0[0]
    }

    /// Returns the median.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// Returns a percentile.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}
