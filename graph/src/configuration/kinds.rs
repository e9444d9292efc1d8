//! The kinds of configuration, listed once. What depends on the kind is asked of its folder.

use hlorank_proto::v1::config_batch::Configs;

use super::{
    Batch, Form, FusionBatch, LayoutBatch, NodeFeatureBatch, TileBatch, encoded_form::FormFacts,
    feature_rows::FeatureRows, read_batch::ReadBatch,
};
use crate::{ConfigurationError, Limits, Task};

/// A wire form, among those of its kind.
#[derive(Clone, Copy)]
pub(super) struct WireForm {
    pub(super) task: Task,
    position: usize,
    pub(super) facts: &'static FormFacts,
}

/// Defines [`Configurations`] of these kinds. Each is named as its [`Task`] is.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($batch:ty),)*) => {
        /// A batch of configurations of one graph.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Configurations {
            $($(#[$doc])* $kind($batch),)*
        }

        impl Configurations {
            /// The batch, whatever its kind.
            #[must_use]
            pub fn batch(&self) -> &dyn Batch {
                match self {
                    $(Self::$kind(batch) => batch,)*
                }
            }

            pub(super) fn into_batch(self) -> Box<dyn Batch> {
                match self {
                    $(Self::$kind(batch) => Box::new(batch),)*
                }
            }

            /// Copies the configurations of these numbers, which must be below the length.
            #[must_use]
            pub fn select(&self, numbers: &[usize]) -> Self {
                match self {
                    $(Self::$kind(batch) => Self::$kind(batch.select(numbers)),)*
                }
            }

            /// Reads configurations of one graph that [`Self::canonical`] wrote, at least one.
            pub fn from_canonical<'a>(
                task: Task,
                configs: impl IntoIterator<Item = &'a [u8]>,
                limits: &Limits,
            ) -> Result<Self, ConfigurationError> {
                match task {
                    $(Task::$kind => <$batch>::from_canonical(configs, limits).map(Self::$kind),)*
                }
            }
        }

        impl WireForm {
            /// Returns the form with this field of a `ConfigBatch`, if there is one.
            pub(super) fn of_field(number: u32) -> Option<Self> {
                // Field numbers are unique among all kinds, because all forms are fields of one
                // message.
                $(if let Some(position) = position::<$batch>(number) {
                    return Some(Self {
                        task: Task::$kind,
                        position,
                        facts: &<$batch>::FORMS[position].facts,
                    });
                })*
                None
            }

            /// Reads and checks the configurations of an encoded message; `configurable` holds the node of each slot.
            pub(super) fn read(
                &self,
                message: &[u8],
                configurable: &[u32],
                limits: &Limits,
            ) -> Result<Configurations, ConfigurationError> {
                // The position is one of this kind, because only `of_field` makes forms.
                match self.task {
                    $(Task::$kind => {
                        let form = &<$batch>::FORMS[self.position];
                        (form.read)(message, configurable, limits).map(Configurations::$kind)
                    })*
                }
            }
        }

        /// The form of a batch; `None` if no kind has it.
        #[must_use]
        pub fn form(configs: &Configs) -> Option<&dyn Form> {
            $(if let Some(form) = <$batch>::form(configs) {
                return Some(form);
            })*
            None
        }

        /// Starts reading the rows of an npz file with configurations of a task, for a graph with this many slots.
        pub(crate) fn feature_rows(
            task: Task,
            slots: usize,
            limits: Limits,
        ) -> Box<dyn FeatureRows<Configurations>> {
            match task {
                $(Task::$kind => Box::new(OfKind {
                    rows: <$batch>::feature_rows(slots, limits),
                    kind: Configurations::$kind,
                }),)*
            }
        }
    };
}

kinds! {
    /// Layouts of the configurable nodes of a module.
    Layout(LayoutBatch),
    /// Tiles of a kernel.
    Tile(TileBatch),
    /// Fusions of a program.
    Fusion(FusionBatch),
    /// Columns of a feature set for every node.
    FeatureSet(NodeFeatureBatch),
}

fn position<B: ReadBatch>(number: u32) -> Option<usize> {
    B::FORMS.iter().position(|form| form.facts.number == number)
}

/// Rows whose batch becomes [`Configurations`].
struct OfKind<B> {
    rows: Box<dyn FeatureRows<B>>,
    kind: fn(B) -> Configurations,
}

impl<B> FeatureRows<Configurations> for OfKind<B> {
    fn push(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        self.rows.push(row)
    }

    fn finish(self: Box<Self>) -> Result<Configurations, ConfigurationError> {
        self.rows.finish().map(self.kind)
    }
}
