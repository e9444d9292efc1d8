use std::sync::Arc;

use super::Session;
use crate::{call::CallError, compute::Class, engine::BatchPart, outcome::KernelTime};

impl Session {
    /// Returns the kernels of some configurations of the batch that was kept, and their predicted seconds.
    pub(crate) async fn explain(&self, configs: &[u32]) -> Result<Vec<Vec<KernelTime>>, CallError> {
        self.check_explainable()?;
        let Some(batch) = &self.kept_batch else {
            return Ok(Vec::new());
        };
        let numbers = configs.iter().map(|&config| config as usize).collect();
        let chosen = BatchPart::of_numbers(Arc::clone(batch), numbers);
        let terms = self.terms_to_continue(Class::Interactive);
        let kernels = self.engine.kernels(&self.model, &self.graph, chosen, terms);
        Ok(kernels.await?)
    }

    fn check_explainable(&self) -> Result<(), CallError> {
        let unsupported = |why| Err(CallError::ExplainUnsupported { why });
        if self.graph.whole.program().is_none() {
            return unsupported("only fusions have kernels");
        }
        if self.predictor().is_some() {
            return unsupported("scores that are adapted to measurements are no sums over kernels");
        }
        Ok(())
    }
}
