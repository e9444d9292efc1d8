use std::{sync::Arc, time::Instant};

use hlorank_graph::Configurations;

use crate::compute::Class;

/// Configurations to score: a batch that others may use too, or some of its configurations.
#[derive(Clone)]
pub struct BatchPart {
    batch: Arc<Configurations>,
    /// The numbers of the chosen configurations; `None` for all.
    numbers: Option<Vec<usize>>,
}

/// The terms on which configurations are scored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Configurations that would not be scored by then are refused.
    pub deadline: Option<Instant>,
    /// Whether the work is done before other work.
    pub class: Class,
    /// Whether the configurations belong to a request some of which was scored. They are accepted however much work is
    /// queued.
    pub continues_request: bool,
}

impl BatchPart {
    /// The configurations of these numbers, which must be below the length of the batch.
    pub fn of_numbers(batch: Arc<Configurations>, numbers: Vec<usize>) -> Self {
        Self {
            batch,
            numbers: Some(numbers),
        }
    }

    /// Returns the whole batch, if it is chosen.
    pub fn whole(&self) -> Option<&Arc<Configurations>> {
        match self.numbers {
            Some(_) => None,
            None => Some(&self.batch),
        }
    }

    /// Returns the configurations to a plan, which owns what it finds rows of. A batch that nobody else uses is moved;
    /// otherwise this copies, which takes long for a large batch and so belongs on a worker.
    pub(crate) fn into_configurations(self) -> Configurations {
        match self.numbers {
            Some(numbers) => self.batch.select(&numbers),
            None => Arc::unwrap_or_clone(self.batch),
        }
    }
}

impl From<Arc<Configurations>> for BatchPart {
    fn from(batch: Arc<Configurations>) -> Self {
        Self {
            batch,
            numbers: None,
        }
    }
}

impl From<Configurations> for BatchPart {
    fn from(batch: Configurations) -> Self {
        Self::from(Arc::new(batch))
    }
}
