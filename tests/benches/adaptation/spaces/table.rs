//! The regrets of many searches, by kernel.

use super::{
    regret::{Regrets, STEPS},
    site::Sources,
};

#[derive(Default)]
pub(super) struct Table(Vec<(String, Vec<Regrets>)>);

impl Table {
    /// Adds a search. Searches of one kernel follow each other.
    pub(super) fn add(&mut self, kernel: &str, regrets: Regrets) {
        match self.0.last_mut() {
            Some((last, all)) if last == kernel => all.push(regrets),
            _ => self.0.push((kernel.to_owned(), vec![regrets])),
        }
    }

    /// Returns the mean of a kernel's searches, empty if there are none.
    pub(super) fn kernel(&self, name: &str) -> Regrets {
        let found = self.0.iter().find(|(kernel, _)| kernel == name);
        found.map_or_else(Regrets::default, |(_, all)| Regrets::mean(all))
    }

    /// Returns the mean of the means of kernels.
    pub(super) fn mean(&self) -> Regrets {
        let kernels: Vec<Regrets> = self.0.iter().map(|(_, all)| Regrets::mean(all)).collect();
        Regrets::mean(&kernels)
    }

    /// Says what the means are of.
    pub(super) fn extent(&self) -> String {
        let searches: usize = self.0.iter().map(|(_, all)| all.len()).sum();
        format!(
            "geometric mean of {searches} searches in spaces of {} kernels",
            self.0.len()
        )
    }

    pub(super) fn print(&self, sources: Sources, measurements: usize) {
        let steps: Vec<String> = STEPS
            .iter()
            .filter(|&&step| step <= measurements)
            .map(ToString::to_string)
            .collect();
        println!("\nRegret in %, {sources}, by number of measurements:\n");
        println!("| kernel | searches | {} |", steps.join(" | "));
        println!("| --- | {}", "---: | ".repeat(1 + steps.len()).trim_end());
        for (kernel, all) in &self.0 {
            let mean = Regrets::mean(all);
            println!("| {kernel} | {} | {} |", all.len(), mean.cells());
        }
        println!("| mean of kernels | | {} |", self.mean().cells());
    }
}
