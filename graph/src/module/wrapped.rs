use crate::wire::{Fields, Payload};

/// The module inside an `HloProto`, or the bytes themselves.
///
/// Field 1 of an `HloProto` is the module, whose field 3 holds computations; field 1 of an `HloModuleProto` is
/// its name, in which the key byte of field 3 (a control character) cannot stand.
pub(crate) fn inner_module(bytes: &[u8]) -> &[u8] {
    let first = Fields::of(bytes).map_while(Result::ok).find(|(number, _)| *number == 1);
    match first {
        Some((_, Payload::Bytes(inner))) if holds_computations(inner) => inner,
        _ => bytes,
    }
}

/// Whether a message reads as an `HloModuleProto` with at least one computation.
pub(crate) fn holds_computations(message: &[u8]) -> bool {
    let mut found = false;
    for field in Fields::of(message) {
        match field {
            Err(_) => return false,
            Ok((3, payload)) => found |= matches!(payload, Payload::Bytes(_)),
            Ok(_) => {}
        }
    }
    found
}
