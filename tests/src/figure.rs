//! Figures that benchmarks measure.

use std::{
    fs,
    time::{Duration, Instant},
};

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

impl Figure {
    /// Prints the figure and writes it to `target/figures`.
    ///
    /// # Panics
    /// If that folder cannot be written.
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

/// Returns the durations of the calls in milliseconds, ascending.
pub async fn call_times(calls: usize, mut call: impl AsyncFnMut()) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..calls {
        let start = Instant::now();
        call().await;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Returns the durations of the runs, ascending.
pub fn times(runs: usize, mut run: impl FnMut()) -> Vec<Duration> {
    let time = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let mut times: Vec<Duration> = std::iter::repeat_with(time).take(runs).collect();
    times.sort_unstable();
    times
}
