//! Batches as they arrive: still encoded. They are read straight into [`Configurations`], because the messages of the
//! readable forms would take many times their size once decoded.

use bytes::Bytes;
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};
use prost::Message as _;

use super::{
    checks::EncodedSize, configurations::Configurations, feature_set, fusion, layout, tile,
};
use crate::{
    ConfigurationError, Limits, Scope, Task,
    wire::{Fields, Payload, WireError, count_messages, count_numbers, last_number, uint32},
};

/// Reads and checks the configurations of an encoded message; the second argument holds the node of each slot.
type ReadConfigs = fn(&[u8], &[u32], &Limits) -> Result<Configurations, ConfigurationError>;

/// A wire form of a kind of configurations, which is read without being decoded first.
struct WireForm {
    /// Number and name of its field in a `ConfigBatch`.
    field: (u32, &'static str),
    task: Task,
    /// Returns the number of configurations that an encoded message claims to have.
    count: fn(&[u8]) -> Result<usize, WireError>,
    read: ReadConfigs,
}

static FORMS: [WireForm; 9] = [
    WireForm {
        field: (1, "layout_configs"),
        task: Task::Layout,
        count: first_messages,
        read: |message, nodes, limits| {
            layout::wire::read_readable(message, nodes, limits).map(Configurations::Layout)
        },
    },
    WireForm {
        field: (2, "packed_layout_configs"),
        task: Task::Layout,
        count: first_number,
        read: |message, nodes, limits| {
            layout::wire::read_packed(message, nodes, limits).map(Configurations::Layout)
        },
    },
    WireForm {
        field: (3, "delta_layout_configs"),
        task: Task::Layout,
        count: |message| count_numbers(message, layout::wire::CHANGE_COUNTS),
        read: |message, nodes, limits| {
            layout::wire::read_delta(message, nodes, limits).map(Configurations::Layout)
        },
    },
    WireForm {
        field: (4, "tile_configs"),
        task: Task::Tile,
        count: first_messages,
        read: |message, _, limits| {
            tile::wire::read_readable(message, limits).map(Configurations::Tile)
        },
    },
    WireForm {
        field: (5, "packed_tile_configs"),
        task: Task::Tile,
        count: first_number,
        read: |message, _, limits| {
            tile::wire::read_packed(message, limits).map(Configurations::Tile)
        },
    },
    WireForm {
        field: (6, "fusion_configs"),
        task: Task::Fusion,
        count: first_messages,
        read: |message, nodes, limits| {
            fusion::wire::read_readable(message, nodes, limits).map(Configurations::Fusion)
        },
    },
    WireForm {
        field: (7, "packed_fusion_configs"),
        task: Task::Fusion,
        count: first_number,
        read: |message, nodes, limits| {
            fusion::wire::read_packed(message, nodes, limits).map(Configurations::Fusion)
        },
    },
    WireForm {
        field: (9, "node_feature_configs"),
        task: Task::FeatureSet,
        count: first_number,
        read: |message, nodes, limits| {
            feature_set::wire::read(message, nodes, limits).map(Configurations::FeatureSet)
        },
    },
    WireForm {
        field: (10, "parameter_configs"),
        task: Task::FeatureSet,
        count: first_messages,
        read: |message, nodes, limits| {
            feature_set::wire::read_parameters(message, nodes, limits)
                .map(Configurations::FeatureSet)
        },
    },
];

/// Counts the messages of the first field, which are the configurations of a readable form.
fn first_messages(message: &[u8]) -> Result<usize, WireError> {
    count_messages(message, 1)
}

/// Returns the number in the first field, which is the number of configurations of a packed form.
fn first_number(message: &[u8]) -> Result<usize, WireError> {
    Ok(uint32(last_number(message, 1)?) as usize)
}

/// A batch of configurations in one of its wire forms, before it is read and checked.
#[derive(Clone)]
pub struct EncodedBatch {
    form: &'static WireForm,
    message: Bytes,
    count: usize,
}

impl EncodedBatch {
    /// Finds the form of an encoded `ConfigBatch`, and counts its configurations. Returns `None` if no form is set. This
    /// takes time in proportion to the message, and no memory.
    pub fn parse(batch: &Bytes) -> Result<Option<Self>, ConfigurationError> {
        let mut found = None;
        for field in Fields::new(batch) {
            let (number, payload) = field?;
            let Some(form) = FORMS.iter().find(|form| form.field.0 == number) else {
                continue;
            };
            let Payload::Bytes(message) = payload else {
                return Err(WireError::WireType(number).into());
            };
            // Protobuf would let the last form win, which hides a mistake of the client.
            if found.is_some() {
                return Err(ConfigurationError::SeveralForms);
            }
            let count = (form.count)(message)?;
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
    pub fn task(&self) -> Task {
        self.form.task
    }

    /// Name of the field that holds it.
    pub fn field(&self) -> &'static str {
        self.form.field.1
    }

    /// Number of configurations that the message claims to have.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of columns of a node that the message claims to have, if they are of a feature set.
    pub fn columns(&self) -> Option<usize> {
        (self.task() == Task::FeatureSet).then(|| feature_set::wire::columns(&self.message))
    }

    /// Maximum number of bytes that [`Self::read`] takes beside the message, for a graph with this many slots.
    pub fn read_bytes(&self, slots: usize, limits: &Limits) -> usize {
        let size = EncodedSize {
            bytes: self.message.len(),
            configs: self.count,
            slots,
        };
        match self.task() {
            Task::Layout => layout::wire::read_bytes(&size, limits),
            Task::Tile => tile::wire::read_bytes(&size, limits),
            Task::Fusion => fusion::wire::read_bytes(&size, limits),
            Task::FeatureSet => feature_set::wire::read_bytes(&size, limits),
        }
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
        (self.form.read)(&self.message, configurable, limits)
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
        Self::parse(&batch.encode_to_vec().into())?.ok_or(ConfigurationError::Empty)
    }
}
