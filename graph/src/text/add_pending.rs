use hlorank_proto::xla::HloInstructionProto;

use super::{
    attributes::keep_dimensions,
    computation::Computation,
    module::Parser,
    pending::{Pending, Wrapped},
};
use crate::{GraphError, module::Origin};

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

    fn add_wrapped(&mut self, wrapped: Wrapped) -> Result<(), GraphError> {
        let Wrapped {
            id,
            signature,
            mut operation,
        } = wrapped;
        let mut computation = Computation::new(id);
        operation.operand_ids.clear();
        for (number, shape) in (0..).zip(signature.parameters) {
            let id = computation.instruction_id(computation.nodes.len());
            operation.operand_ids.push(id);
            let parameter = HloInstructionProto {
                name: "async_param".to_owned(),
                opcode: "parameter".to_owned(),
                parameter_number: number,
                shape: Some(self.shapes.message(shape, &mut self.lexer)?),
                ..HloInstructionProto::default()
            };
            let origin = Origin::implied(&parameter);
            self.push(&parameter, shape, origin, &mut computation);
        }
        "async_op".clone_into(&mut operation.name);
        operation.shape = Some(self.shapes.message(signature.result, &mut self.lexer)?);
        keep_dimensions(&mut operation);
        let origin = Origin::implied(&operation);
        self.push(&operation, signature.result, origin, &mut computation);
        computation.close("", &mut self.builder)
    }
}
