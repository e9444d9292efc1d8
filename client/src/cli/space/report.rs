use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use hlorank_client::{Ranking, Reported, Suggestions};
use serde::Serialize;
use serde_json::Value;

use super::subject::{Rows, Unmeasured};
use crate::cli::{
    lesson::Lesson,
    measured::Prediction,
    output::{Align, Table, counted, printable},
    suggest::{prediction, reason},
};

/// Rows that were not measured, in the order in which to measure them.
#[derive(Debug, Serialize)]
pub(super) struct SpaceReport {
    name: String,
    graph_hash: String,
    /// `no model` if the answer rests on measurements alone.
    model: String,
    /// Number of rows that were not measured.
    candidates: usize,
    rows: Vec<ChosenRow>,
    /// What the server learned.
    learned: Option<Lesson>,
}

/// A row to measure.
#[derive(Debug, Serialize)]
struct ChosenRow {
    /// Number of the row in the table, from 0.
    number: usize,
    /// Why it is suggested, if it is.
    reason: Option<&'static str>,
    score: f32,
    predicted: Option<Prediction>,
    configuration: BTreeMap<String, Value>,
}

/// What came of reports.
#[derive(Debug, Default, Serialize)]
pub(super) struct KeptReport {
    accepted: u64,
    known: u64,
}

impl SpaceReport {
    pub(super) fn of_suggestions(rows: Rows, suggested: &Suggestions) -> Self {
        let chosen = suggested.suggestions.iter().map(|each| ChosenRow {
            reason: Some(reason(each.reason)),
            predicted: prediction(each),
            ..ChosenRow::of(&rows.unmeasured[each.config], each.score)
        });
        Self {
            rows: chosen.collect(),
            graph_hash: suggested.graph_hash.to_string(),
            model: suggested.model.to_string(),
            candidates: rows.unmeasured.len(),
            name: rows.name,
            learned: suggested.adaptation.as_ref().map(Lesson::from),
        }
    }

    pub(super) fn of_ranking(rows: Rows, ranking: &Ranking) -> Self {
        let best = ranking.best.iter().enumerate();
        let chosen = best.map(|(place, ranked)| ChosenRow {
            predicted: Prediction::of(ranking, place),
            ..ChosenRow::of(&rows.unmeasured[ranked.config], ranked.score)
        });
        Self {
            rows: chosen.collect(),
            graph_hash: ranking.graph_hash.to_string(),
            model: ranking.model.to_string(),
            candidates: rows.unmeasured.len(),
            name: rows.name,
            learned: ranking.adaptation.as_ref().map(Lesson::from),
        }
    }

    fn table(&self) -> Table {
        // Either all rows of a report have a reason or none has, so cells and columns agree.
        let are_suggested = self.rows.iter().any(|row| row.reason.is_some());
        let mut columns = vec![("measure", Align::Right), ("row", Align::Right)];
        columns.extend(are_suggested.then_some(("reason", Align::Left)));
        columns.extend([("predicted", Align::Right), ("configuration", Align::Left)]);
        let mut table = Table::new(&columns);
        for (place, row) in self.rows.iter().enumerate() {
            table.row(row.cells(place + 1));
        }
        table
    }
}

impl ChosenRow {
    fn of(row: &Unmeasured, score: f32) -> Self {
        Self {
            number: row.number,
            reason: None,
            score,
            predicted: None,
            configuration: row.configuration.clone(),
        }
    }

    /// Returns the cells of the row that is measured at this place, from 1.
    fn cells(&self, place: usize) -> Vec<String> {
        let predicted = self.predicted.map(|predicted| predicted.to_string());
        let mut cells = vec![place.to_string(), self.number.to_string()];
        cells.extend(self.reason.map(str::to_owned));
        cells.extend([
            predicted.unwrap_or_else(|| "-".to_owned()),
            self.described(),
        ]);
        cells
    }

    fn described(&self) -> String {
        // JSON would write a text in quotes.
        let value = |(name, value): (&String, &Value)| match value.as_str() {
            Some(text) => format!("{name}={text}"),
            None => format!("{name}={value}"),
        };
        let values: Vec<String> = self.configuration.iter().map(value).collect();
        values.join(" ")
    }
}

impl Display for SpaceReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let candidates = counted(self.candidates, "row");
        let name = printable(&self.name);
        let model = printable(&self.model);
        writeln!(formatter, "{name}: {candidates} without a time, {model}")?;
        writeln!(formatter, "\n{}", self.table())?;
        self.learned
            .as_ref()
            .map_or(Ok(()), |learned| writeln!(formatter, "{learned}"))
    }
}

impl KeptReport {
    pub(super) fn add(&mut self, reported: &Reported) {
        self.accepted += u64::from(reported.accepted);
        self.known += u64::from(reported.known);
    }
}

impl Display for KeptReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { accepted, known } = self;
        writeln!(
            formatter,
            "{accepted} measurements are new; {known} were known."
        )
    }
}
