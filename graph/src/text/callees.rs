use std::collections::HashMap;

use crate::{GraphError, TextError, shortened, syntax::Lexer};

/// Ids of the computations of a module. A name may be used before its computation is defined.
#[derive(Default)]
pub(super) struct Callees<'a> {
    by_name: HashMap<&'a str, Callee>,
    count: i64,
}

/// A computation by name.
struct Callee {
    id: i64,
    /// First position of the name in the text.
    position: usize,
    is_defined: bool,
}

impl<'a> Callees<'a> {
    /// Returns a new id for a computation without a name.
    pub(super) fn unnamed(&mut self) -> i64 {
        self.count += 1;
        self.count
    }

    /// Returns the id of the computation with this name, which is used at `position`.
    pub(super) fn named(&mut self, name: &'a str, position: usize) -> i64 {
        let next = self.count + 1;
        let callee = self.by_name.entry(name).or_insert(Callee {
            id: next,
            position,
            is_defined: false,
        });
        // The id is above the count only if the name is new. Ids begin with 1, because the builder
        // takes an entry with id 0 for one that the module does not name.
        self.count = self.count.max(callee.id);
        callee.id
    }

    /// Returns the id of the computation whose definition begins at `position`.
    pub(super) fn define(
        &mut self,
        name: &'a str,
        position: usize,
        lexer: &Lexer<'_>,
    ) -> Result<i64, GraphError> {
        let id = self.named(name, position);
        match self.by_name.get_mut(name) {
            Some(callee) if !callee.is_defined => {
                callee.is_defined = true;
                Ok(id)
            }
            _ => Err(lexer.error(
                position,
                TextError::DuplicateComputation {
                    name: shortened(name),
                },
            )),
        }
    }

    /// Checks that every called computation is defined. The error names the first one that is not.
    pub(super) fn check(&self, lexer: &Lexer<'_>) -> Result<(), GraphError> {
        // The map has no order, so the position decides which error is reported.
        let missing = self.by_name.iter().filter(|(_, callee)| !callee.is_defined);
        match missing.min_by_key(|(_, callee)| callee.position) {
            None => Ok(()),
            Some((name, callee)) => {
                let name = shortened(name);
                Err(lexer.error(callee.position, TextError::UnknownComputation { name }))
            }
        }
    }
}
