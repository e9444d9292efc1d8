//! How far a command is.

use std::{path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::output::printable;

/// A bar on standard error where that is a terminal, else nothing. Gone once it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

const TEMPLATE: &str = "{bar:30} {pos}/{len} graphs, {elapsed} {wide_msg}";

/// How often the time is shown anew.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Work on the graphs of so many files. A file counts as one graph until it is read.
    pub(crate) fn over(files: usize) -> Self {
        let style = ProgressStyle::with_template(TEMPLATE).expect("the template is valid");
        let bar = ProgressBar::new(files as u64).with_style(style);
        bar.enable_steady_tick(TICK);
        Self(bar)
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
