use hlorank_proto::xla::{HloInstructionProto, LayoutProto, ShapeProto, TupleElement};

use super::lexer::Lexer;
use crate::{GraphError, TextError};

/// Maximum rank of an array whose shape is not written.
pub(crate) const MAX_RANK: usize = 64;

/// XLA's size of a dimension without a bound, which is written `?`.
pub(crate) const UNBOUNDED: i64 = i64::MIN;

/// Reads a shape such as `f32[2,3]{1,0:T(8,128)}` or `(f32[2], token[])`. An array without a layout gets the
/// default one, as in XLA's parser. The elements of a tuple are only counted.
pub(crate) fn shape(lexer: &mut Lexer<'_>) -> Result<ShapeProto, GraphError> {
    shape_if_next(lexer)?.ok_or_else(|| lexer.unexpected("a shape"))
}

/// Reads a shape if one is next. Names and opcodes may stand in the same place.
pub(crate) fn shape_if_next(lexer: &mut Lexer<'_>) -> Result<Option<ShapeProto>, GraphError> {
    if lexer.peek() == b'(' {
        lexer.expect("(")?;
        let elements = lexer.list(")", Lexer::skip_value)?;
        return Ok(Some(tuple_of(elements.len())));
    }
    // No space stands between an element type and its bracket, so the byte right after the word
    // decides.
    let start = lexer.position();
    let name = lexer.word();
    match lexer.next_byte() {
        b'[' if !name.is_empty() => array(lexer, element_type(name)).map(Some),
        // The shape of a buffer, `b(f32[4])`, which is one element in protobuf.
        b'(' if name == "b" => {
            lexer.skip_group()?;
            Ok(Some(ShapeProto {
                element_type: BUFFER,
                ..tuple_of(1)
            }))
        }
        _ => {
            lexer.return_to(start);
            Ok(None)
        }
    }
}

/// Returns the shape of a tuple of `elements`.
pub(crate) fn tuple_of(elements: usize) -> ShapeProto {
    let tuple_shapes = vec![TupleElement {}; elements];
    ShapeProto {
        element_type: TUPLE,
        tuple_shapes,
        ..ShapeProto::default()
    }
}

fn array(lexer: &mut Lexer<'_>, element_type: i32) -> Result<ShapeProto, GraphError> {
    lexer.expect("[")?;
    let dimensions = lexer.list("]", dimension)?;
    let rank = dimensions.len();
    let minor_to_major = if !has_layout(element_type) {
        None
    } else if lexer.peek() == b'{' {
        // A brace after a shape may also open a computation, whose first word is a name.
        let start = lexer.position();
        lexer.eat("{");
        let is_layout = matches!(lexer.peek(), b'0'..=b'9' | b'-' | b':' | b'}');
        lexer.return_to(start);
        Some(if is_layout {
            layout(lexer, rank)?
        } else {
            row_major(rank)
        })
    } else {
        Some(row_major(rank))
    };
    let layout = minor_to_major.map(|minor_to_major| LayoutProto { minor_to_major });
    Ok(ShapeProto {
        element_type,
        dimensions,
        tuple_shapes: Vec::new(),
        layout,
    })
}

/// Returns the default layout of an array.
pub(crate) fn row_major(rank: usize) -> Vec<i64> {
    (0..i64::try_from(rank).unwrap_or(0)).rev().collect()
}

/// Returns the size of two dimensions that are put together.
pub(crate) fn total_size(one: i64, other: i64) -> i64 {
    if one == UNBOUNDED || other == UNBOUNDED {
        UNBOUNDED
    } else {
        one.saturating_add(other)
    }
}

/// Reads a dimension: a size, `<=` and an upper bound, or `?` if it is unbounded.
fn dimension(lexer: &mut Lexer<'_>) -> Result<i64, GraphError> {
    if lexer.eat("?") {
        return Ok(UNBOUNDED);
    }
    // XLA keeps the bound as the size, and that the size is dynamic in a field that no feature
    // uses.
    lexer.eat("<=");
    lexer.number()
}

/// Reads the order of dimensions in `{1,0:T(8,128)}`. Tiles and other parts after it are skipped.
fn layout(lexer: &mut Lexer<'_>, rank: usize) -> Result<Vec<i64>, GraphError> {
    let start = lexer.position();
    lexer.expect("{")?;
    // No more numbers are read than the array has dimensions, so a long list is refused at its
    // first extra number.
    let mut minor_to_major = Vec::with_capacity(rank);
    while minor_to_major.len() < rank && lexer.peek().is_ascii_digit() {
        minor_to_major.push(lexer.number()?);
        lexer.eat(",");
    }
    if !matches!(lexer.peek(), b':' | b'}') {
        return Err(lexer.unexpected("`}`"));
    }
    if !is_permutation(&minor_to_major, rank) {
        return Err(lexer.error(start, TextError::Layout { rank }));
    }
    // What follows a colon can hold brackets of its own, so the layout is skipped as a whole from
    // its brace.
    if !lexer.eat("}") {
        lexer.return_to(start);
        lexer.skip_group()?;
    }
    Ok(minor_to_major)
}

/// Returns whether a list has each of the numbers from 0 to `rank - 1` once.
pub(crate) fn is_permutation(numbers: &[i64], rank: usize) -> bool {
    if numbers.len() != rank {
        return false;
    }
    if rank > 64 {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        return sorted.into_iter().eq((0..).take(rank));
    }
    // As many distinct numbers below the length as the list is long are all of them.
    let mut seen = 0_u64;
    for &number in numbers {
        let position = usize::try_from(number).unwrap_or(usize::MAX);
        if position >= rank {
            return false;
        }
        seen |= 1 << position;
    }
    seen.count_ones() as usize == rank
}

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

/// Returns whether a word is the name of an element type.
pub(crate) fn is_element_type(word: &str) -> bool {
    NAMES.iter().any(|(name, _)| *name == word)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ShapeProto {
        let mut lexer = Lexer::new(text);
        let shape = shape(&mut lexer).unwrap();
        assert!(lexer.is_at_end(), "{text}");
        shape
    }

    #[test]
    fn an_array_without_a_layout_is_row_major_and_a_scalar_may_have_tiles_alone() {
        for (text, expected) in [
            ("f32[2,3,4]", Some(vec![2, 1, 0])),
            ("s32[]{:T(256)}", Some(vec![])),
            ("token[]", None),
        ] {
            let layout = read(text).layout;
            assert_eq!(layout.map(|layout| layout.minor_to_major), expected);
        }
    }

    #[test]
    fn an_element_type_newer_than_the_table_has_no_feature_and_is_no_error() {
        assert_eq!(read("f32[2]").element_type, 11);
        assert!(read("f5e2m2[2]").element_type > 34);
    }
}
