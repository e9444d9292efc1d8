use hlorank_proto::xla::HloInstructionProto;

use super::{lexer::Lexer, shape::shape};

/// Reads name, shape and opcode of an instruction from its text; `None` if the text is no instruction.
pub(crate) fn head(instruction: &str) -> Option<HloInstructionProto> {
    let mut lexer = Lexer::new(instruction);
    let name = lexer.name("an instruction").ok()?.to_owned();
    lexer.expect("=").ok()?;
    let shape = Some(shape(&mut lexer).ok()?);
    let opcode = lexer.name("an opcode").ok()?.to_owned();
    Some(HloInstructionProto {
        name,
        shape,
        opcode,
        ..HloInstructionProto::default()
    })
}
