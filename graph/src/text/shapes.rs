use std::sync::Arc;

use hlorank_proto::xla::ShapeProto;

use crate::{
    GraphError, TextError,
    syntax::{Lexer, MAX_DEPTH, shape, shape_if_next, tuple_of},
};

/// The number of a shape in [`Shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShapeId(u32);

/// The shapes of the instructions of a module and of the elements that were asked for. The featurizer needs no more than
/// one level of a shape, so a written one is read again when an element of it is asked for.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    shapes: Vec<ShapeState>,
}

#[derive(Clone, Debug)]
enum ShapeState {
    /// The position of a shape in the text.
    Written(usize),
    /// An array that instructions share which the text only implies.
    Array(Arc<ShapeProto>),
    /// A tuple with these elements.
    Tuple(Box<[ShapeId]>),
}

impl Shapes {
    /// Reads the next shape if one is next, and remembers it.
    pub(super) fn read(
        &mut self,
        lexer: &mut Lexer<'_>,
    ) -> Result<Option<(ShapeId, ShapeProto)>, GraphError> {
        let start = lexer.position();
        let message = shape_if_next(lexer)?;
        Ok(message.map(|message| (self.add(ShapeState::Written(start)), message)))
    }

    /// Adds an array.
    pub(super) fn array(&mut self, shape: ShapeProto) -> ShapeId {
        self.add(ShapeState::Array(Arc::new(shape)))
    }

    /// Adds a tuple.
    pub(super) fn tuple(&mut self, elements: Vec<ShapeId>) -> ShapeId {
        self.add(ShapeState::Tuple(elements.into()))
    }

    fn add(&mut self, shape: ShapeState) -> ShapeId {
        // Every shape follows from at least one byte of the text, so there are fewer than 2^32.
        let id = ShapeId(u32::try_from(self.shapes.len()).unwrap_or(u32::MAX));
        self.shapes.push(shape);
        id
    }

    fn get(&self, id: ShapeId) -> &ShapeState {
        &self.shapes[id.0 as usize]
    }

    /// Returns a shape as the featurizer takes it: the elements of a tuple are only counted.
    pub(super) fn message(
        &self,
        id: ShapeId,
        lexer: &mut Lexer<'_>,
    ) -> Result<ShapeProto, GraphError> {
        match self.get(id) {
            &ShapeState::Written(position) => lexer.aside(position, shape),
            ShapeState::Array(shape) => Ok((**shape).clone()),
            ShapeState::Tuple(elements) => Ok(tuple_of(elements.len())),
        }
    }

    /// Returns the same for instructions that do not write it. All that have an array share it.
    pub(super) fn shared(
        &mut self,
        id: ShapeId,
        lexer: &mut Lexer<'_>,
    ) -> Result<Arc<ShapeProto>, GraphError> {
        // A written tuple is split, so that it is not read again as often as it is asked for.
        self.elements(id, lexer)?;
        if let ShapeState::Array(shape) = self.get(id) {
            return Ok(Arc::clone(shape));
        }
        let shape = Arc::new(self.message(id, lexer)?);
        if let ShapeState::Written(_) = self.get(id) {
            self.shapes[id.0 as usize] = ShapeState::Array(Arc::clone(&shape));
        }
        Ok(shape)
    }

    /// Returns the elements of a tuple; `None` if the shape is no tuple. A written tuple is split once.
    pub(super) fn elements(
        &mut self,
        id: ShapeId,
        lexer: &mut Lexer<'_>,
    ) -> Result<Option<&[ShapeId]>, GraphError> {
        if let ShapeState::Written(position) = *self.get(id) {
            if lexer.aside(position, Lexer::peek) != b'(' {
                return Ok(None);
            }
            // An element is read in full here only to find where it ends; what it says is read when
            // it is asked for.
            let element = |lexer: &mut Lexer<'_>| {
                let start = lexer.position();
                skip(lexer, MAX_DEPTH)?;
                Ok(start)
            };
            let starts = lexer.aside(position, |lexer| {
                lexer.expect("(")?;
                lexer.list(")", element)
            })?;
            // The tuple replaces the position, so that many elements of one tuple do not read it
            // many times.
            let elements = starts
                .into_iter()
                .map(|start| self.add(ShapeState::Written(start)))
                .collect();
            self.shapes[id.0 as usize] = ShapeState::Tuple(elements);
        }
        match self.get(id) {
            ShapeState::Tuple(elements) => Ok(Some(elements)),
            _ => Ok(None),
        }
    }

    /// Returns whether two shapes are equal but for their layouts. At least one of them is written, which bounds the time.
    pub(super) fn compatible(
        &mut self,
        [one, other]: [ShapeId; 2],
        lexer: &mut Lexer<'_>,
    ) -> Result<bool, GraphError> {
        if one == other {
            return Ok(true);
        }
        let count = self.elements(one, lexer)?.map(<[_]>::len);
        if self.elements(other, lexer)?.map(<[_]>::len) != count {
            return Ok(false);
        }
        let Some(count) = count else {
            let one = self.message(one, lexer)?;
            let other = self.message(other, lexer)?;
            return Ok(one.element_type == other.element_type && one.dimensions == other.dimensions);
        };
        // Both are tuples of this length. The elements are looked up again for each index, because
        // the comparison of the elements before may have added shapes.
        for index in 0..count {
            let pair = [one, other].map(|shape| match self.get(shape) {
                ShapeState::Tuple(elements) => elements[index],
                _ => shape,
            });
            if !self.compatible(pair, lexer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Skips a shape whose tuples are nested at most `depth` deep, so that splitting every level takes a bounded time.
fn skip(lexer: &mut Lexer<'_>, depth: usize) -> Result<(), GraphError> {
    if lexer.peek() != b'(' {
        return shape(lexer).map(drop);
    }
    let start = lexer.position();
    let Some(depth) = depth.checked_sub(1) else {
        return Err(lexer.error(start, TextError::TooDeep { limit: MAX_DEPTH }));
    };
    lexer.expect("(")?;
    lexer.list(")", |lexer| skip(lexer, depth)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> (Shapes, Vec<ShapeId>, Lexer<'_>) {
        let (mut shapes, mut lexer) = (Shapes::default(), Lexer::new(text));
        let mut ids = Vec::new();
        while let Some((id, _)) = shapes.read(&mut lexer).unwrap() {
            ids.push(id);
        }
        assert!(lexer.is_at_end(), "{text}");
        (shapes, ids, lexer)
    }

    #[test]
    fn layouts_do_not_matter_for_compatibility() {
        let (mut shapes, ids, mut lexer) = shapes(
            "(f32[2,3]{0,1}, s32[]) (f32[2,3], s32[]) (f32[2,3], u32[]) (f32[2,3]) f32[2,3]{1,0}",
        );
        let with_first: Vec<bool> = ids
            .iter()
            .map(|&id| shapes.compatible([ids[0], id], &mut lexer).unwrap())
            .collect();
        assert_eq!(with_first, [true, true, false, false, false]);
    }
}
