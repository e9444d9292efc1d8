/// A piece of work. It gets the worker that runs it.
pub(super) type Work = Box<dyn FnOnce(Worker) + Send>;

/// Number of a worker, from 0. It selects the worker's own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker(pub usize);

/// Priority of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Small calls, whose clients wait for the answer.
    Interactive,
    /// Everything else.
    #[default]
    Bulk,
}
