//! The progress of a command.

use std::{path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::output::printable;

/// A progress bar, shown only if standard error is a terminal. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

const TEMPLATE: &str = "{bar:30} {pos}/{len} graphs, {elapsed} {wide_msg}";

const WORKER_TEMPLATE: &str = "{bar:30} {pos}/{len} configurations, {elapsed} {wide_msg}";

/// Interval between updates of the elapsed time.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Returns the progress over the graphs of these files. A file counts as one graph until it is read.
    pub(crate) fn over(files: usize) -> Self {
        Self::new(files, TEMPLATE)
    }

    /// Returns the progress of a worker over the configurations that are to be measured.
    pub(crate) fn over_configurations(count: usize) -> Self {
        Self::new(count, WORKER_TEMPLATE)
    }

    fn new(length: usize, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let bar = ProgressBar::new(length as u64).with_style(style);
        // Without ticks, the elapsed time would stand still until a call is answered.
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Shows what is being done; without a terminal, as a line on standard error.
    pub(crate) fn say(&self, text: &str) {
        if self.0.is_hidden() {
            anstream::eprintln!("{text}");
        } else {
            self.0.set_message(text.to_owned());
        }
    }

    /// Shows the file that is being read.
    pub(crate) fn show_file(&self, path: &Path) {
        self.0.set_message(printable(&path.display().to_string()));
    }

    /// Adds the graphs of a file that has been read; at least one.
    pub(crate) fn add_graphs(&self, graphs: usize) {
        // The file is in the length already, as one graph.
        self.0.inc_length(graphs.saturating_sub(1) as u64);
    }

    /// Counts one graph as done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // A failed command drops the bar too, so its message is not printed beside a stale bar.
        self.0.finish_and_clear();
    }
}
