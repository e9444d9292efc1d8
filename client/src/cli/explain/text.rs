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

impl Display for Explanation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.configurations_table())?;
        if self.kernels.is_empty() {
            return self.write_parts(formatter);
        }
        for (explained, kernels) in self.configurations.iter().zip(&self.kernels) {
            match kernels.0.len() {
                0 => writeln!(
                    formatter,
                    "{}: a kernel is too large for the model",
                    capitalized(explained.role)
                )?,
                _ => writeln!(formatter, "{}: {kernels}", capitalized(explained.role))?,
            }
        }
        Ok(())
    }
}

impl Explanation {
    fn configurations_table(&self) -> Table {
        let columns = [
            ("", Align::Left),
            ("number", Align::Right),
            ("score", Align::Right),
            ("measured", Align::Right),
            ("configuration", Align::Left),
        ];
        let mut table = Table::new(&columns);
        for explained in &self.configurations {
            table.row([
                explained.role.to_owned(),
                explained.number_text(),
                explained.score_text.clone(),
                explained
                    .run_time_ns
                    .map_or_else(|| "-".to_owned(), run_time),
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
        let explained = self.configurations.each_ref();
        let [best, reference, worst] = explained.map(|explained| explained.role);
        let columns = [
            (kind, Align::Right),
            (best, Align::Right),
            (reference, Align::Right),
            (worst, Align::Right),
            (self.contents(), Align::Left),
        ];
        let mut table = Table::new(&columns);
        for part in self.parts.iter().take(SHOWN) {
            let [best, reference, worst] = part.effects.map(effect);
            table.row([part.name.clone(), best, reference, worst, part.contents()]);
        }
        write!(formatter, "{table}")?;
        let others = self.parts.len().saturating_sub(SHOWN) + self.left_out;
        if others > 0 {
            let others = grouped(others);
            writeln!(formatter, "and {others} others with smaller effects")?;
        }
        let [to_best, to_worst] = self.combined();
        let (best, with_best) = (effect(to_best.0), effect(to_best.1));
        let (worst, with_worst) = (effect(to_worst.0), effect(to_worst.1));
        writeln!(
            formatter,
            "\nFrom the {reference} to the best, the score changes by {best}, and to the worst by {worst}. Of these, {with_best} \
             and {with_worst} are due to several {kind}s together."
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
        let of_node = |choice: &Choice| match choice.node {
            Some(node) => format!("{node} {} {}", choice.what, choice.values[0]),
            None => choice.values.join(", "),
        };
        let shown: Vec<String> = self.choices.iter().take(SHOWN_NODES).map(of_node).collect();
        let others = self.choices.len().saturating_sub(SHOWN_NODES);
        let others = if others > 0 {
            format!(", {} more", grouped(others))
        } else {
            String::new()
        };
        let size = if self.nodes.is_empty() {
            String::new()
        } else {
            counted(self.nodes.len(), "node") + ": "
        };
        format!("{size}{}{others}", shown.join(", "))
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
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}
