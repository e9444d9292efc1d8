//! Formats the result of a load as text.

use std::fmt::{self, Display, Formatter};

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
            let late = grouped(count(self.starts.later_than_10_ms));
            writeln!(
                formatter,
                "{} hlorank fell behind: {late} of {} calls began more than 10 ms after they were due, and their \
                 latency includes this delay; use a lower rate, or run hlorank on another machine",
                styled(WARNING, "warning:"),
                grouped(count(self.all.sent)),
            )?;
        }
        Ok(())
    }
}

impl BenchReport {
    fn is_behind(&self) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "calls stay far below 2^53")]
        let share = self.starts.later_than_10_ms as f64 / self.all.sent as f64;
        share > LATE_SHARE
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&COLUMNS.map(|name| (name, Align::Right)));
        self.calls.iter().for_each(|class| table.row(class.cells()));
        table.styled_row(HEADING, self.all.cells());
        table
    }

    /// Returns the table of calls without an answer, by reason, or `None` if all were answered.
    fn not_answered(&self) -> Option<Table> {
        let latency = ["calls", "p50", "p99", "max"].map(|name| (name, Align::Right));
        let mut table = Table::new(&[&[("not answered", Align::Left)][..], &latency].concat());
        for failure in &self.failures {
            let Latency { p50, p99, max, .. } = failure.latency_ms;
            let cells = [failure.name(), grouped(count(failure.calls))];
            table.row(cells.into_iter().chain([p50, p99, max].map(time)));
        }
        let in_flight = counted(self.plan.max_in_flight as usize, "call");
        let unsent = format!("not sent: {in_flight} waited for their answers");
        let others = [
            (unsent, self.all.not_sent),
            ("unfinished".to_owned(), self.all.unfinished),
        ];
        for (name, calls) in others.into_iter().filter(|(_, calls)| *calls > 0) {
            table.row(
                [name, grouped(count(calls))]
                    .into_iter()
                    .chain([None; 3].map(time)),
            );
        }
        let is_any = !self.failures.is_empty() || self.all.not_sent > 0 || self.all.unfinished > 0;
        is_any.then_some(table)
    }
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
    fn cells(&self) -> [String; COLUMNS.len()] {
        let [due, sent, answered, failed] =
            [self.due, self.sent, self.answered, self.failed].map(|calls| grouped(count(calls)));
        let Latency {
            p50,
            p90,
            p99,
            p99_9,
            max,
            ..
        } = self.latency_ms;
        let [p50, p90, p99, p99_9, max] = [p50, p90, p99, p99_9, max].map(time);
        let rate = format!("{:.1}", self.answered_per_second);
        [
            self.name(""),
            due,
            sent,
            answered,
            failed,
            rate,
            p50,
            p90,
            p99,
            p99_9,
            max,
        ]
    }
}

impl FailureReport {
    fn name(&self) -> String {
        let code = self.code.as_deref().unwrap_or("invalid answer");
        let reason = self
            .reason
            .as_deref()
            .map(|reason| format!(" {}", printable(reason)));
        format!("{code}{}", reason.unwrap_or_default())
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
