//! The progress of a command.

use std::{path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::output::printable;

/// A progress bar, shown only if standard error is a terminal. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

const TEMPLATE: &str = "{bar:30} {pos}/{len} graphs, {elapsed} {wide_msg}";
const TIME_TEMPLATE: &str = "{bar:30} {elapsed}, {wide_msg}";

/// Interval between updates of the elapsed time.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Returns the progress over the graphs of these files. A file counts as one graph until it is read.
    pub(crate) fn over(files: usize) -> Self {
        Self::new(TEMPLATE, files as u64)
    }

    /// Returns the progress of work that takes a known time.
    pub(crate) fn over_time(length: Duration) -> Self {
        Self::new(TIME_TEMPLATE, milliseconds(length))
    }

    fn new(template: &str, length: u64) -> Self {
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let bar = ProgressBar::new(length).with_style(style);
        // Without ticks, the elapsed time would stand still until a call is answered.
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Shows the elapsed time and a message.
    pub(crate) fn show_time(&self, elapsed: Duration, message: &str) {
        self.0.set_position(milliseconds(elapsed));
        self.0.set_message(message.to_owned());
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

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for Progress {
    fn drop(&mut self) {
        // A failed command drops the bar too, so its message is not printed beside a stale bar.
        self.0.finish_and_clear();
    }
}
