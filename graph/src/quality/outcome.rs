/// The measured run time and the score of a configuration. Both are higher for a slower configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Measured run time, in any unit.
    pub run_time: f64,
    /// Score of the model.
    pub score: f64,
}
