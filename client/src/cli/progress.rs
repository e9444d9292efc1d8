//! How far a command is.

use std::{path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::output::printable;

/// A bar on standard error where that is a terminal, else nothing. Gone once it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

const TEMPLATE: &str = "{bar:30} {pos}/{len} graphs, {elapsed} {wide_msg}";
const TIME_TEMPLATE: &str = "{bar:30} {elapsed}, {wide_msg}";

/// How often the time is shown anew.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Work on the graphs of so many files. A file counts as one graph until it is read.
    pub(crate) fn over(files: usize) -> Self {
        Self::new(TEMPLATE, files as u64)
    }

    /// Work that takes so long.
    pub(crate) fn over_time(length: Duration) -> Self {
        Self::new(TIME_TEMPLATE, milliseconds(length))
    }

    fn new(template: &str, length: u64) -> Self {
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let bar = ProgressBar::new(length).with_style(style);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// So much of the time has passed, and this was done.
    pub(crate) fn passed(&self, time: Duration, done: &str) {
        self.0.set_position(milliseconds(time));
        self.0.set_message(done.to_owned());
    }

    /// A file is being read.
    pub(crate) fn reads(&self, path: &Path) {
        self.0.set_message(printable(&path.display().to_string()));
    }

    /// It was read: so many graphs are to be worked on, at least one.
    pub(crate) fn has_read(&self, graphs: usize) {
        self.0.inc_length(graphs.saturating_sub(1) as u64);
    }

    /// One graph is done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
