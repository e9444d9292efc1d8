//! Formats explanations as text.

use std::fmt::{self, Display, Formatter};

use super::{
    explanation::{Explained, Explanation},
    parts::{Choice, Part},
};
use crate::cli::output::{Align, Table, counted, grouped, run_time};

/// Maximum number of parts in a table.
const SHOWN: usize = 20;

/// Maximum number of nodes of a segment in a row of the table.
const SHOWN_NODES: usize = 4;

const COLUMNS: [(&str, Align); 5] = [
    ("", Align::Left),
    ("number", Align::Right),
    ("score", Align::Right),
    ("measured", Align::Right),
    ("configuration", Align::Left),
];

impl Display for Explanation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.configurations_table())?;
        if self.kernels.is_empty() {
            return self.write_parts(formatter);
        }
        for (explained, kernels) in self.configurations.iter().zip(&self.kernels) {
            let role = capitalized(explained.role);
            // The server returns no kernels of a configuration with an infinite score.
            match kernels.0.len() {
                0 => writeln!(formatter, "{role}: a kernel is too large for the model")?,
                _ => writeln!(formatter, "{role}: {kernels}")?,
            }
        }
        Ok(())
    }
}

impl Explanation {
    fn configurations_table(&self) -> Table {
        let mut table = Table::new(&COLUMNS);
        for explained in &self.configurations {
            let measured = explained.run_time_ns.map(run_time);
            table.row([
                explained.role.to_owned(),
                explained.number_text(),
                explained.score_text.clone(),
                measured.unwrap_or_else(|| "-".to_owned()),
                explained.short.clone(),
            ]);
        }
        table
    }

    fn write_parts(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let kind = self.kind_of_part;
        if self.parts.is_empty() {
            return writeln!(formatter, "No single {kind} explains how the three differ.");
        }
        writeln!(formatter, "{}\n", self.meaning())?;
        write!(formatter, "{}", self.parts_table())?;
        let others = self.parts.len().saturating_sub(SHOWN) + self.left_out;
        if others > 0 {
            let others = grouped(others);
            writeln!(formatter, "and {others} others with smaller effects")?;
        }
        self.write_combined(formatter)
    }

    fn parts_table(&self) -> Table {
        let roles = self.configurations.each_ref();
        let [best, reference, worst] = roles.map(|explained| (explained.role, Align::Right));
        let part = (self.kind_of_part, Align::Right);
        let columns = [part, best, reference, worst, (self.contents(), Align::Left)];
        let mut table = Table::new(&columns);
        for part in self.parts.iter().take(SHOWN) {
            let [best, reference, worst] = part.effects.map(effect);
            table.row([part.name.clone(), best, reference, worst, part.contents()]);
        }
        table
    }

    fn write_combined(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let text = |(all, together)| (effect(all), effect(together));
        let [(best, with_best), (worst, with_worst)] = self.combined().map(text);
        writeln!(
            formatter,
            "\nFrom the {} to the best, the score changes by {best}, and to the worst by {worst}. Of these, {with_best} \
             and {with_worst} are due to several {}s together.",
            self.configurations[1].role, self.kind_of_part
        )
    }

    /// Says what effects are.
    pub(crate) fn meaning(&self) -> String {
        let (reference, kind) = (self.configurations[1].role, self.kind_of_part);
        let what = if kind == "segment" {
            "the layouts of one segment do"
        } else {
            "one bound of the tile does"
        };
        format!(
            "What {what} to the score; negative is predicted faster. For best and worst: the score minus that with \
             the {reference}'s choice in this {kind}. For {reference}: what the best's choice in this {kind} alone would \
             change."
        )
    }

    fn contents(&self) -> &'static str {
        if self.kind_of_part == "segment" {
            "nodes: best's layouts"
        } else {
            "best, reference, worst"
        }
    }
}

impl Explained {
    /// Returns the number of the configuration, or `-` if it was not sent.
    pub(crate) fn number_text(&self) -> String {
        self.number
            .map_or_else(|| "-".to_owned(), |number| number.to_string())
    }
}

impl Part {
    fn contents(&self) -> String {
        let others = match self.choices.len().saturating_sub(SHOWN_NODES) {
            0 => String::new(),
            others => format!(", {} more", grouped(others)),
        };
        let shown = self.choices.iter().take(SHOWN_NODES).map(Choice::text);
        let text = shown.collect::<Vec<_>>().join(", ") + &others;
        // A bound has no nodes.
        if self.nodes.is_empty() {
            text
        } else {
            format!("{}: {text}", counted(self.nodes.len(), "node"))
        }
    }
}

impl Choice {
    fn text(&self) -> String {
        match self.node {
            // A row has no space for three layouts of each node, so it shows the best's.
            Some(node) => format!("{node} {} {}", self.what, self.values[0]),
            None => self.values.join(", "),
        }
    }
}

/// Formats an effect with its sign.
pub(crate) fn effect(effect: f64) -> String {
    if effect == 0.0 {
        "0".to_owned()
    } else {
        format!("{effect:+.4}")
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
