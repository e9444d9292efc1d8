/// XLA's names of element types, by their `xla.PrimitiveType`.
const NAMES: [(&str, i32); 32] = [
    ("pred", 1),
    ("s8", 2),
    ("s16", 3),
    ("s32", 4),
    ("s64", 5),
    ("u8", 6),
    ("u16", 7),
    ("u32", 8),
    ("u64", 9),
    ("f16", 10),
    ("f32", 11),
    ("f64", 12),
    ("opaque", OPAQUE),
    ("c64", 15),
    ("bf16", 16),
    ("token", TOKEN),
    ("c128", 18),
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

pub(super) const TUPLE: i32 = 13;
pub(super) const OPAQUE: i32 = 14;
pub(super) const TOKEN: i32 = 17;
pub(super) const BUFFER: i32 = 34;
/// A type that is newer than the table. It has no feature, like the types of the table that are newer than `TpuGraphs`.
const NEWER: i32 = i32::MAX;

/// Returns the `xla.PrimitiveType` of a name.
pub(super) fn element_type(name: &str) -> i32 {
    NAMES.iter().find(|(known, _)| *known == name).map_or(NEWER, |(_, number)| *number)
}

/// Returns whether arrays of a type have a layout.
pub(super) fn has_layout(element_type: i32) -> bool {
    !matches!(element_type, TUPLE | OPAQUE | TOKEN | BUFFER)
}
