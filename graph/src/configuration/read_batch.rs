use hlorank_proto::v1::config_batch::Configs;

use super::{Batch, Form, encoded_form::EncodedForm, feature_rows::FeatureRows};
use crate::{ConfigurationError, Limits};

/// How batches of one kind are read: from messages, files and stores. [`Batch`] is what they are asked once they are read.
pub(super) trait ReadBatch: Batch + Sized + 'static {
    /// The wire forms, each of which is a field of `ConfigBatch`.
    const FORMS: &'static [EncodedForm<Self>];

    /// Returns the form of a decoded message; `None` if it is of another kind.
    fn form(configs: &Configs) -> Option<&dyn Form>;

    /// Starts reading the rows of an npz file, for a graph with this many slots.
    fn feature_rows(slots: usize, limits: Limits) -> Box<dyn FeatureRows<Self>>;

    /// Reads configurations of one graph that [`Batch::canonical`] wrote, at least one.
    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError>;
}
