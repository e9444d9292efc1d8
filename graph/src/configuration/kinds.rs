//! Which kinds of configuration there are.

use std::fmt;

use hlorank_proto::v1;

use super::{Kind, Task, feature_set, fusion, layout, tile};

impl Task {
    /// The facts about its kind of configuration.
    #[must_use]
    pub fn kind(self) -> &'static Kind {
        match self {
            Self::Tile => &tile::KIND,
            Self::Layout => &layout::KIND,
            Self::Fusion => &fusion::KIND,
            Self::FeatureSet => &feature_set::KIND,
        }
    }

    /// The name in manifests, settings and messages, such as `tile`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.kind().name
    }

    /// The task of this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// The task on the wire; `None` if it is unspecified.
    #[must_use]
    pub fn from_wire(task: v1::Task) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.kind().wire == task)
    }
}

impl From<Task> for v1::Task {
    fn from(task: Task) -> Self {
        task.kind().wire
    }
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_name_and_a_number_of_its_own() {
        for task in Task::ALL {
            assert_eq!(Task::from_name(&task.to_string()), Some(task));
            assert_eq!(Task::from_wire(task.into()), Some(task));
        }
        assert_eq!(Task::from_name("schedule"), None);
        assert_eq!(Task::from_wire(v1::Task::Unspecified), None);
    }
}
