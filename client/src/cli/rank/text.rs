//! Formats rankings as text.

use std::fmt::{self, Display, Formatter};

use clap::builder::styling::Style;

use super::report::{
    GraphRanking, MeasuredSummary, RankReport, RankedConfiguration, RankedKernels, Reuse, Stages,
};
use crate::cli::{
    output::{Align, Table, counted, grouped, or_dash, printable, run_time},
    style::{GOOD, WARNING, styled},
};

impl Display for RankReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (position, graph) in self.graphs.iter().enumerate() {
            let gap = if position > 0 { "\n" } else { "" };
            write!(formatter, "{gap}{graph}")?;
        }
        Ok(())
    }
}

impl Display for GraphRanking {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.heading())?;
        if let Some(drawn) = &self.drawn {
            writeln!(formatter, "{drawn}")?;
        }
        writeln!(formatter)?;
        write!(formatter, "{}", self.table())?;
        for RankedKernels { rank, kernels } in &self.kernels {
            write!(formatter, "\nRank {rank}: {kernels}")?;
        }
        writeln!(formatter, "\n{}; {}", self.server_ms, self.reuse)?;
        if self.scored < self.configurations {
            let scored = grouped(self.scored);
            let all = grouped(self.configurations);
            writeln!(
                formatter,
                "Only the first {scored} of {all} configurations were scored within the timeout."
            )?;
        }
        if let Some(learned) = &self.learned {
            writeln!(formatter, "{learned}")?;
        }
        if let Some(confidence) = &self.confidence {
            writeln!(formatter, "{confidence}")?;
        }
        for warning in &self.warnings {
            let label = styled(WARNING, "warning:");
            let message = printable(&warning.message);
            let reason = printable(&warning.reason);
            writeln!(formatter, "{label} {message} ({reason})")?;
        }
        self.measured.as_ref().map_or(Ok(()), |measured| {
            writeln!(formatter, "{}", measured.sentence(self.ranking.len()))
        })
    }
}

impl GraphRanking {
    fn heading(&self) -> String {
        let configurations = counted(self.configurations, "configuration");
        format!(
            "{}: {}, {}, {configurations}, {} distinct, {}, {:.1} ms",
            printable(&self.name),
            self.kind,
            counted(self.nodes, "node"),
            grouped(count(self.reuse.distinct_configurations)),
            printable(&self.model),
            self.round_trip_ms,
        )
    }

    fn table(&self) -> Table {
        let columns: Vec<Column> = COLUMNS
            .into_iter()
            .filter(|column| column.is_shown(self))
            .collect();
        let headers: Vec<(&str, Align)> = columns
            .iter()
            .map(|column| (column.name, column.align))
            .collect();
        let mut table = Table::new(&headers);
        for row in &self.ranking {
            table.styled_row(
                self.style(row),
                columns.iter().map(|column| (column.cell)(row)),
            );
        }
        table
    }

    /// Highlights the fastest configuration of the ranking.
    fn style(&self, ranked: &RankedConfiguration) -> Style {
        let best = self
            .measured
            .as_ref()
            .and_then(|measured| measured.best_of_ranking_ns);
        if best.is_some() && ranked.run_time_ns == best {
            GOOD
        } else {
            Style::new()
        }
    }

    fn is_measured(&self) -> bool {
        self.ranking.iter().any(|row| row.run_time_ns.is_some())
    }

    fn has_default(&self) -> bool {
        self.ranking.iter().any(|row| row.over_default.is_some())
    }
}

/// A column of the ranking.
struct Column {
    name: &'static str,
    align: Align,
    shown: Shown,
    cell: fn(&RankedConfiguration) -> String,
}

/// The condition under which a column is shown.
enum Shown {
    Always,
    IfPredicted,
    IfMeasured,
    IfDefaultIsKnown,
}

const COLUMNS: [Column; 7] = [
    Column {
        name: "rank",
        align: Align::Right,
        shown: Shown::Always,
        cell: |row| grouped(row.rank),
    },
    Column {
        name: "number",
        align: Align::Right,
        shown: Shown::Always,
        cell: |row| row.number.to_string(),
    },
    Column {
        name: "score",
        align: Align::Right,
        shown: Shown::Always,
        cell: |row| row.score_text.clone(),
    },
    Column {
        name: "predicted",
        align: Align::Right,
        shown: Shown::IfPredicted,
        cell: |row| {
            row.predicted
                .map_or_else(|| "-".to_owned(), |predicted| predicted.to_string())
        },
    },
    Column {
        name: "measured",
        align: Align::Right,
        shown: Shown::IfMeasured,
        cell: |row| row.run_time_ns.map_or_else(|| "-".to_owned(), run_time),
    },
    Column {
        name: "vs default",
        align: Align::Right,
        shown: Shown::IfDefaultIsKnown,
        cell: |row| {
            row.over_default
                .map_or_else(|| "-".to_owned(), |ratio| or_dash(Some(ratio), 2) + "x")
        },
    },
    Column {
        name: "configuration",
        align: Align::Left,
        shown: Shown::Always,
        cell: |row| row.short.clone(),
    },
];

impl Column {
    fn is_shown(&self, graph: &GraphRanking) -> bool {
        match self.shown {
            Shown::Always => true,
            Shown::IfPredicted => graph.ranking.iter().any(|row| row.predicted.is_some()),
            Shown::IfMeasured => graph.is_measured(),
            Shown::IfDefaultIsKnown => graph.has_default(),
        }
    }
}

impl MeasuredSummary {
    /// Returns a sentence about the run time that measuring only the `top` best-ranked would have found.
    fn sentence(&self, top: usize) -> String {
        let chosen = match self.best_of_ranking_ns {
            Some(time) => format!("The best of the top {top} runs in {}", run_time(time)),
            None => format!("None of the top {top} was measured"),
        };
        let default = match self.default_ns {
            Some(time) => format!("the default configuration takes {}", run_time(time)),
            None => "the default configuration was not measured".to_owned(),
        };
        let skipped = match self.skipped_runs {
            0 => String::new(),
            runs => format!(
                " {} of the file skipped: failed or not applicable.",
                counted(runs, "run")
            ),
        };
        format!(
            "{chosen}; {default}, and the true best of {} takes {} (number {}).{skipped}",
            counted(self.configurations, "measured configuration"),
            run_time(self.best_ns),
            self.best_number,
        )
    }
}

impl Display for Stages {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "server {:.2} ms: queue {:.2}, featurize {:.2}, parse {:.2}, encode {:.2}, head {:.2}, rank {:.2}",
            self.total, self.queue, self.featurize, self.parse, self.encode, self.head, self.rank,
        )
    }
}

impl Display for Reuse {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "segment rows {}: {} distinct, {} evaluated, {} cached",
            grouped(count(self.segment_rows)),
            grouped(count(self.distinct_segment_rows)),
            grouped(count(self.rows_evaluated)),
            grouped(count(self.rows_cached)),
        )
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_sentence_compares_the_ranking_with_the_measurements() {
        let mut summary = MeasuredSummary {
            configurations: 579,
            best_of_ranking_ns: Some(12_340),
            default_ns: Some(15_000),
            best_ns: 12_000,
            best_number: 17,
            skipped_runs: 0,
        };
        assert_eq!(
            summary.sentence(10),
            "The best of the top 10 runs in 12.34 µs; the default configuration takes 15.00 µs, and the true \
             best of 579 measured configurations takes 12.00 µs (number 17)."
        );
        (summary.best_of_ranking_ns, summary.default_ns) = (None, None);
        let sentence = summary.sentence(3);
        assert!(sentence.starts_with(
            "None of the top 3 was measured; the default configuration was not measured"
        ));
    }
}
