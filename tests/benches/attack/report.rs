//! The table of all attacks.

use std::{fmt::Display, time::Duration};

use hlorank_tests::{Figure, Target};

use crate::{limits::Limits, measure::Measured, policies::Changes};

/// The rows of the table, and whether all limits held.
pub(crate) struct Report {
    limits: Limits,
    rows: Vec<[String; COLUMNS]>,
    failures: usize,
    worst_p99: Duration,
    most_bytes: usize,
    is_within: bool,
}

const COLUMNS: usize = 12;

/// Longest time that a server may compute for a call after its deadline.
const LONGEST_OVERRUN: Duration = Duration::from_millis(100);

const HEAD: [&str; COLUMNS] = [
    "attack",
    "connections",
    "calls",
    "MB sent",
    "client: calls",
    "failed",
    "p50 ms",
    "p99 ms",
    "server: MiB",
    "ready ms",
    "overrun ms",
    "verdict",
];

impl Report {
    /// Begins the table with what was measured without an attack.
    pub(crate) fn new(limits: Limits, quiet: &Measured) -> Self {
        let mut report = Self {
            limits,
            rows: vec![HEAD.map(str::to_owned)],
            failures: 0,
            worst_p99: Duration::ZERO,
            most_bytes: 0,
            is_within: true,
        };
        report.add("none", quiet);
        report
    }

    /// Adds what was measured beside an attack, and prints it as progress.
    pub(crate) fn add(&mut self, name: &str, measured: &Measured) {
        self.worst_p99 = self.worst_p99.max(measured.seen.p99);
        self.add_within(self.limits, name, measured, None);
    }

    /// Adds what was measured beside the worst requests of a stage, and how long the server computes after their deadlines.
    pub(crate) fn add_stage(&mut self, name: &str, measured: &Measured, overrun: Duration) {
        self.add_within(self.limits.of_stages(), name, measured, Some(overrun));
    }

    fn add_within(
        &mut self,
        limits: Limits,
        name: &str,
        measured: &Measured,
        overrun: Option<Duration>,
    ) {
        let mut exceeded = limits.exceeded(measured);
        if overrun.is_some_and(|time| time > LONGEST_OVERRUN) {
            exceeded.push("computes after the deadline".to_owned());
        }
        let seen = &measured.seen;
        self.failures += seen.failures.len();
        self.most_bytes = self
            .most_bytes
            .max(measured.peak_bytes.unwrap_or(usize::MAX));
        self.is_within &= exceeded.is_empty();
        if let Some(failure) = seen.failures.first() {
            println!("  {} calls failed, such as: {failure}", seen.failures.len());
        }
        let verdict = if exceeded.is_empty() {
            "within".to_owned()
        } else {
            exceeded.join(", ")
        };
        let changes = measured.changes.map_or(String::new(), |changes| {
            let Changes {
                acknowledged,
                lost,
                refused,
            } = changes;
            format!(" ({acknowledged} changes, {lost} lost, {refused} refused)")
        });
        let row = [
            format!("{name}{changes}"),
            measured.connections.to_string(),
            measured.calls.to_string(),
            format!("{:.1}", measured.bytes as f64 / 1e6),
            seen.calls.to_string(),
            seen.failures.len().to_string(),
            milliseconds(Some(seen.p50)),
            milliseconds(Some(seen.p99)),
            measured
                .peak_bytes
                .map_or("killed".to_owned(), |bytes| (bytes >> 20).to_string()),
            milliseconds(measured.ready),
            overrun.map_or_else(String::new, |time| milliseconds(Some(time))),
            verdict,
        ];
        println!("  {}", row.join("  "));
        self.rows.push(row);
    }

    /// Prints the table, writes the figures, and returns whether all limits held.
    pub(crate) fn finish(self) -> bool {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        println!(
            "\nAttackers, server and well-behaved client share {cores} cores. Limits: no failed call, p99 of {} ms, {} MiB \
             resident, ready within a second.\n",
            milliseconds(Some(self.limits.p99())),
            self.limits.resident_bytes() >> 20
        );
        print(&self.rows);
        self.write_figures();
        self.is_within
    }

    fn write_figures(&self) {
        let figure = |name: &str, value: f64, unit, most: f64, how: &str| {
            let (name, how) = (name.to_owned(), how.to_owned());
            Figure {
                name,
                value,
                unit,
                target: Target::AtMost(most),
                how,
            }
            .write();
        };
        let limit_ms = self.limits.p99().as_secs_f64() * 1e3;
        let limit_mib = (self.limits.resident_bytes() >> 20) as f64;
        figure(
            "attack_failed_calls",
            self.failures as f64,
            "calls",
            0.0,
            "of the client beside all attacks",
        );
        let p99 = self.worst_p99.as_secs_f64() * 1e3;
        figure(
            "attack_p99",
            p99,
            "ms",
            limit_ms,
            "the longest p99 of the client beside an attack",
        );
        let most = (self.most_bytes >> 20) as f64;
        figure(
            "attack_memory",
            most,
            "MiB",
            limit_mib,
            "the highest resident memory of the server",
        );
    }
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or("never".to_owned(), |time| {
        format!("{:.1}", time.as_secs_f64() * 1e3)
    })
}

/// Prints aligned columns: the first and the last to the left, the others to the right.
fn print(rows: &[[String; COLUMNS]]) {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    for row in rows {
        let cell = |column: usize| -> Box<dyn Display + '_> {
            let (text, width) = (&row[column], widths[column]);
            match column {
                0 => Box::new(format!("{text:<width$}")),
                _ if column + 1 == COLUMNS => Box::new(text),
                _ => Box::new(format!("{text:>width$}")),
            }
        };
        println!(
            "{}",
            (0..COLUMNS)
                .map(|column| cell(column).to_string())
                .collect::<Vec<_>>()
                .join("  ")
        );
    }
}
