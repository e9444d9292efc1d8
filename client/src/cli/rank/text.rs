//! Formats rankings as text.

use std::fmt::{self, Display, Formatter};

use clap::builder::styling::Style;

use super::report::{
    GraphRanking, MeasuredSummary, RankReport, RankedConfiguration, RankedKernels, Reuse, Stages,
    Warning,
};
use crate::cli::{
    output::{Align, Table, counted, grouped, printable, run_time},
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
        self.write_ranking(formatter)?;
        for RankedKernels { rank, kernels } in &self.kernels {
            write!(formatter, "\nRank {rank}: {kernels}")?;
        }
        writeln!(formatter, "\n{}; {}", self.server_ms, self.reuse)?;
        self.write_remarks(formatter)?;
        // The comparison with measured run times comes last, where it stays in view.
        self.measured.as_ref().map_or(Ok(()), |measured| {
            writeln!(formatter, "{}", measured.sentence(self.ranking.len()))
        })
    }
}

impl GraphRanking {
    fn write_ranking(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.heading())?;
        if let Some(drawn) = &self.drawn {
            writeln!(formatter, "{drawn}")?;
        }
        write!(formatter, "\n{}", self.table())
    }

    /// Writes how far the ranking can be trusted, and what is unusual about it.
    fn write_remarks(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
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
        self.warnings
            .iter()
            .try_for_each(|warning| writeln!(formatter, "{warning}"))
    }

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
        // Configurations at the end of the line are long, so empty columns are left out.
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
        // Equal run times are equally good, and all of them are highlighted.
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
    Column::right("rank", |row| grouped(row.rank)),
    Column::right("number", |row| row.number.to_string()),
    Column::right("score", |row| row.score_text.clone()),
    Column::right("predicted", |row| {
        let predicted = row.predicted.map(|predicted| predicted.to_string());
        predicted.unwrap_or_else(|| "-".to_owned())
    })
    .only(Shown::IfPredicted),
    Column::right("measured", |row| {
        row.run_time_ns.map_or_else(|| "-".to_owned(), run_time)
    })
    .only(Shown::IfMeasured),
    Column::right("vs default", |row| {
        let ratio = row.over_default.map(|ratio| format!("{ratio:.2}x"));
        ratio.unwrap_or_else(|| "-".to_owned())
    })
    .only(Shown::IfDefaultIsKnown),
    Column {
        align: Align::Left,
        ..Column::right("configuration", |row| row.short.clone())
    },
];

impl Column {
    const fn right(name: &'static str, cell: fn(&RankedConfiguration) -> String) -> Self {
        Self {
            name,
            align: Align::Right,
            shown: Shown::Always,
            cell,
        }
    }

    const fn only(self, shown: Shown) -> Self {
        Self { shown, ..self }
    }

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
        let chosen = self.chosen_text(top);
        let default = self.default_text();
        let measured = counted(self.configurations, "measured configuration");
        let best = run_time(self.best_ns);
        let number = self.best_number;
        let skipped = self.skipped_text();
        format!(
            "{chosen}; {default}, and the true best of {measured} takes {best} (number {number}).{skipped}"
        )
    }

    fn chosen_text(&self, top: usize) -> String {
        match self.best_of_ranking_ns {
            Some(time) => format!("The best of the top {top} runs in {}", run_time(time)),
            None => format!("None of the top {top} was measured"),
        }
    }

    fn default_text(&self) -> String {
        match self.default_ns {
            Some(time) => format!("the default configuration takes {}", run_time(time)),
            None => "the default configuration was not measured".to_owned(),
        }
    }

    fn skipped_text(&self) -> String {
        let runs = counted(self.skipped_runs, "run");
        match self.skipped_runs {
            0 => String::new(),
            _ => format!(" {runs} of the file skipped: failed or not applicable."),
        }
    }
}

impl Display for Warning {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let label = styled(WARNING, "warning:");
        // A warning may quote names of the request, which can contain control characters.
        let message = printable(&self.message);
        let reason = printable(&self.reason);
        write!(formatter, "{label} {message} ({reason})")
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
