//! Batches as they arrive: still encoded. They are read straight into [`Configurations`], because the messages of the
//! readable forms would take many times their size once decoded.

use bytes::Bytes;
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};
use prost::Message as _;

use super::{
    configurations::{Configurations, WireForm},
    encoded_form::EncodedSize,
};
use crate::{
    ConfigurationError, Limits, Scope, Task,
    wire::{Fields, Payload, WireError},
};

/// A batch of configurations in one of its wire forms, before it is read and checked.
#[derive(Clone)]
pub struct EncodedBatch {
    form: WireForm,
    message: Bytes,
    count: usize,
}

impl EncodedBatch {
    /// Finds the form of an encoded `ConfigBatch`, and counts its configurations. Returns `None` if no form is set. This
    /// takes time in proportion to the message, and no memory.
    pub fn of(batch: &Bytes) -> Result<Option<Self>, ConfigurationError> {
        let mut found = None;
        for field in Fields::of(batch) {
            let (number, payload) = field?;
            let Some(form) = WireForm::of_field(number) else {
                continue;
            };
            let Payload::Bytes(message) = payload else {
                return Err(WireError::WireType(number).into());
            };
            // Protobuf would let the last form win, which hides a mistake of the client.
            if found.is_some() {
                return Err(ConfigurationError::SeveralForms);
            }
            let count = (form.facts.count)(message)?;
            found = Some(Self {
                form,
                // A view of the batch, which may be megabytes long.
                message: batch.slice_ref(message),
                count,
            });
        }
        Ok(found)
    }

    /// The task of its configurations.
    #[must_use]
    pub fn task(&self) -> Task {
        self.form.task
    }

    /// Name of the field that holds it.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.form.facts.field
    }

    /// Number of configurations that the message claims to have.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of columns of a node that the message claims to have, if they are of a feature set.
    #[must_use]
    pub fn columns(&self) -> Option<usize> {
        self.form
            .facts
            .columns
            .map(|columns| columns(&self.message))
    }

    /// Maximum number of bytes that [`Self::read`] takes beside the message, for a graph with this many slots.
    #[must_use]
    pub fn read_bytes(&self, slots: usize, limits: &Limits) -> usize {
        let size = EncodedSize {
            bytes: self.message.len(),
            configs: self.count,
            slots,
        };
        (self.form.facts.read_bytes)(&size, limits)
    }

    /// Reads and checks the configurations against a graph of this task; `configurable` holds the node of each of its
    /// slots.
    pub fn read(
        &self,
        task: Task,
        configurable: &[u32],
        limits: &Limits,
    ) -> Result<Configurations, ConfigurationError> {
        if self.task() != task {
            return Err(ConfigurationError::WrongTask {
                batch: self.task(),
                graph: task,
            });
        }
        if configurable.is_empty() {
            // All configurations would be equal, and the graph is more likely the wrong one.
            match task.kind().scope {
                Scope::Nodes => return Err(ConfigurationError::NothingToConfigure),
                Scope::Program => return Err(ConfigurationError::NothingToFuse),
                Scope::Kernel | Scope::EveryNode => {}
            }
        }
        self.form.read(&self.message, configurable, limits)
    }
}

impl TryFrom<&Configs> for EncodedBatch {
    type Error = ConfigurationError;

    fn try_from(configs: &Configs) -> Result<Self, ConfigurationError> {
        // There is one reader, of encoded messages. Clients and tests that have a decoded one
        // encode it again.
        let batch = ConfigBatch {
            configs: Some(configs.clone()),
        };
        Self::of(&batch.encode_to_vec().into())?.ok_or(ConfigurationError::Empty)
    }
}
