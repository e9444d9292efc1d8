use hlorank_proto::xla::HloInstructionProto;

use super::{
    attributes::keep_dimensions,
    computation::Computation,
    module::Parser,
    pending::{Pending, Wrapped},
    shapes::ShapeId,
};
use crate::GraphError;

impl Parser<'_, '_> {
    /// Adds all pending computations to the module, in order.
    pub(super) fn add_pending(&mut self) -> Result<(), GraphError> {
        for pending in self.pending.take() {
            match pending {
                Pending::Read { name, computation } => {
                    computation.close(name, &mut self.builder)?;
                }
                Pending::Wrapped(wrapped) => self.add_wrapped(wrapped)?,
            }
        }
        Ok(())
    }

    /// Adds the computation of an asynchronous operation: its parameters, and the operation as its
    /// root.
    fn add_wrapped(&mut self, wrapped: Wrapped) -> Result<(), GraphError> {
        let Wrapped {
            id,
            signature,
            mut operation,
        } = wrapped;
        let mut computation = Computation::new(id);
        // The operands that the text names are those of the first step, which passes them to this
        // computation.
        operation.operand_ids.clear();
        for (number, shape) in (0..).zip(signature.parameters) {
            let id = computation.instruction_id(computation.nodes.len());
            operation.operand_ids.push(id);
            let parameter = self.wrapped_parameter(number, shape)?;
            self.push_implied(&parameter, shape, &mut computation);
        }
        // XLA gives the parameters and the operation these names.
        "async_op".clone_into(&mut operation.name);
        operation.shape = Some(self.shape_message(signature.result)?);
        keep_dimensions(&mut operation);
        self.push_implied(&operation, signature.result, &mut computation);
        computation.close("", &mut self.builder)
    }

    fn wrapped_parameter(
        &mut self,
        parameter_number: i64,
        shape: ShapeId,
    ) -> Result<HloInstructionProto, GraphError> {
        Ok(HloInstructionProto {
            name: "async_param".to_owned(),
            opcode: "parameter".to_owned(),
            parameter_number,
            shape: Some(self.shape_message(shape)?),
            ..HloInstructionProto::default()
        })
    }
}
