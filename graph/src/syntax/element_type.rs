/// XLA's names of element types, by their `xla.PrimitiveType`.
const NAMES: [(&str, i32); 32] = [
    ("pred", PRED),
    ("s8", 2),
    ("s16", 3),
    ("s32", S32),
    ("s64", 5),
    ("u8", 6),
    ("u16", 7),
    ("u32", U32),
    ("u64", 9),
    ("f16", 10),
    ("f32", F32),
    ("f64", F64),
    ("opaque", OPAQUE),
    ("c64", C64),
    ("bf16", 16),
    ("token", TOKEN),
    ("c128", C128),
    ("f8e5m2", 19),
    ("f8e4m3fn", 20),
    ("s4", 21),
    ("u4", 22),
    ("f8e4m3b11fnuz", 23),
    ("f8e5m2fnuz", 24),
    ("f8e4m3fnuz", 25),
    ("s2", 26),
    ("u2", 27),
    ("f8e4m3", 28),
    ("f8e3m4", 29),
    ("s1", 30),
    ("u1", 31),
    ("f4e2m1fn", 32),
    ("f8e8m0fnu", 33),
];

pub(crate) const PRED: i32 = 1;
pub(crate) const S32: i32 = 4;
pub(crate) const U32: i32 = 8;
const F32: i32 = 11;
const F64: i32 = 12;
const C64: i32 = 15;
const C128: i32 = 18;
pub(crate) const TUPLE: i32 = 13;
pub(crate) const OPAQUE: i32 = 14;
pub(crate) const TOKEN: i32 = 17;
pub(crate) const BUFFER: i32 = 34;
/// A type that is newer than the table. It has no feature, like the types of the table that are newer than `TpuGraphs`.
const NEWER: i32 = i32::MAX;

/// Returns the `xla.PrimitiveType` of a name.
pub(crate) fn element_type(name: &str) -> i32 {
    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(NEWER, |(_, number)| *number)
}

/// Returns whether arrays of a type have a layout.
pub(crate) fn has_layout(element_type: i32) -> bool {
    !matches!(element_type, TUPLE | OPAQUE | TOKEN | BUFFER)
}

/// Returns the type of the parts of a complex number, or the type itself.
pub(crate) fn real_of(element_type: i32) -> i32 {
    match element_type {
        C64 => F32,
        C128 => F64,
        other => other,
    }
}

/// Returns the type of a complex number with parts of a type.
pub(crate) fn complex_of(element_type: i32) -> i32 {
    if element_type == F64 { C128 } else { C64 }
}
