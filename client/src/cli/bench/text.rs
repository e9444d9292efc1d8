//! Formats the result of a load as text.

use std::{
    fmt::{self, Display, Formatter},
    iter,
};

use super::report::{BenchReport, ClassReport, FailureReport, Latency, Plan};
use crate::cli::{
    output::{Align, Table, counted, grouped, printable, run_time},
    style::{HEADING, WARNING, styled},
};

/// Share of late starts among all calls above which a warning is printed.
const LATE_SHARE: f64 = 0.01;

impl Display for BenchReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let early = if self.interrupted {
            ", ended early"
        } else {
            ""
        };
        writeln!(formatter, "{:.1} s{early}: {}\n", self.seconds, self.plan)?;
        write!(formatter, "{}", self.table())?;
        if let Some(table) = self.not_answered() {
            write!(formatter, "\n{table}")?;
        }
        let late = &self.starts.late_ms;
        let [p50, p99, max] = [late.p50, late.p99, late.max].map(time);
        writeln!(
            formatter,
            "\nCalls began {p50} (p50), {p99} (p99), {max} (max) after they were due."
        )?;
        if self.is_behind() {
            self.write_warning(formatter)?;
        }
        Ok(())
    }
}

impl BenchReport {
    fn is_behind(&self) -> bool {
        // Without calls the share is not a number, which no comparison finds above the limit.
        #[expect(clippy::cast_precision_loss, reason = "calls stay far below 2^53")]
        let share = self.starts.later_than_10_ms as f64 / self.all.sent as f64;
        share > LATE_SHARE
    }

    fn write_warning(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let late = grouped(count(self.starts.later_than_10_ms));
        writeln!(
            formatter,
            "{} hlorank fell behind: {late} of {} calls began more than 10 ms after they were due, and their \
             latency includes this delay; use a lower rate, or run hlorank on another machine",
            styled(WARNING, "warning:"),
            grouped(count(self.all.sent)),
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&COLUMNS.map(|name| (name, Align::Right)));
        self.calls.iter().for_each(|class| table.row(class.cells()));
        table.styled_row(HEADING, self.all.cells());
        table
    }

    /// Returns the table of calls without an answer, by reason, or `None` if all were answered.
    fn not_answered(&self) -> Option<Table> {
        let failed = self.failures.iter().map(FailureReport::cells);
        let rows: Vec<_> = failed.chain(self.not_ended()).collect();
        if rows.is_empty() {
            return None;
        }
        let latency = ["calls", "p50", "p99", "max"].map(|name| (name, Align::Right));
        let mut table = Table::new(&[&[("not answered", Align::Left)][..], &latency].concat());
        for row in rows {
            table.row(row);
        }
        Some(table)
    }

    /// Returns the rows of the calls that neither were answered nor failed. They have no latency.
    fn not_ended(&self) -> impl Iterator<Item = [String; 5]> {
        let in_flight = counted(self.plan.max_in_flight as usize, "call");
        let not_sent = format!("not sent: {in_flight} waited for their answers");
        let rows = [
            (not_sent, self.all.not_sent),
            ("unfinished".to_owned(), self.all.unfinished),
        ];
        let rows = rows.into_iter().filter(|(_, calls)| *calls > 0);
        rows.map(|(name, calls)| row(name, calls, [None; 3]))
    }
}

/// Returns a row of the table of calls without an answer.
fn row(name: String, calls: u64, latency: [Option<f64>; 3]) -> [String; 5] {
    let [p50, p99, max] = latency.map(time);
    [name, grouped(count(calls)), p50, p99, max]
}

const COLUMNS: [&str; 11] = [
    "configurations",
    "due",
    "sent",
    "answered",
    "failed",
    "answered/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
];

impl ClassReport {
    /// Returns a cell for each of [`COLUMNS`].
    fn cells(&self) -> impl Iterator<Item = String> {
        let counts = [self.due, self.sent, self.answered, self.failed];
        let counts = counts.map(|calls| grouped(count(calls)));
        let rate = format!("{:.1}", self.answered_per_second);
        let latency = &self.latency_ms;
        let tail = [latency.p99, latency.p99_9, latency.max];
        let times = [latency.p50, latency.p90].into_iter().chain(tail).map(time);
        let name = iter::once(self.name(""));
        name.chain(counts).chain([rate]).chain(times)
    }
}

impl FailureReport {
    fn cells(&self) -> [String; 5] {
        let Latency { p50, p99, max, .. } = self.latency_ms;
        row(self.name(), self.calls, [p50, p99, max])
    }

    fn name(&self) -> String {
        let code = self.code.as_deref().unwrap_or("invalid answer");
        match &self.reason {
            // The reason is text of the server, which the terminal must not obey.
            Some(reason) => format!("{code} {}", printable(reason)),
            None => code.to_owned(),
        }
    }
}

impl Display for Plan {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(
                formatter,
                "{rate} calls/s at random times (seed {})",
                self.seed
            )?,
            None => write!(formatter, "calls at their recorded times")?,
        }
        write!(
            formatter,
            " for {:.1} s, {}",
            self.seconds,
            counted(self.connections, "connection")
        )
    }
}

fn time(milliseconds: Option<f64>) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "times of calls")]
    milliseconds.map_or_else(|| "-".to_owned(), |time| run_time((time * 1e6) as i64))
}

fn count(calls: u64) -> usize {
    usize::try_from(calls).unwrap_or(usize::MAX)
}
