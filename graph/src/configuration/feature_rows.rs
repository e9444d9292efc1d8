use crate::ConfigurationError;

/// Reads the configurations of an npz file row by row, into batches of one kind.
pub(crate) trait FeatureRows<Batch> {
    /// Adds the next configuration.
    fn push(&mut self, row: &[f32]) -> Result<(), ConfigurationError>;

    /// Returns the configurations; fails if there are none and the kind does not allow that.
    fn finish(self: Box<Self>) -> Result<Batch, ConfigurationError>;
}
