use std::collections::HashMap;

use hlorank_proto::xla::ShapeProto;

use super::{
    computation::{ParsedComputation, PendingComputations},
    shapes::{ShapeId, Shapes},
};
use crate::{
    GraphError, HloModule, Limits, TextError,
    module::ModuleBuilder,
    pace,
    recognize::named_text,
    shortened,
    syntax::{Lexer, MAX_DEPTH, MAX_RANK, TABLES, shape},
};

impl<'a> HloModule<'a> {
    /// Reads HLO text, as XLA prints it. The result is the module that XLA's own parser makes of the text: computations
    /// keep the order of the text, and instructions have the order in which XLA serializes them.
    /// The error for text of another known format names it.
    pub fn read_text(hlo: &'a str, limits: &Limits) -> Result<Self, GraphError> {
        Self::read_one(hlo, limits).map_err(|error| named_text(hlo, error))
    }

    /// Reads HLO text as [`read_text`](Self::read_text) does, but names no other format.
    pub(crate) fn read_one(hlo: &'a str, limits: &Limits) -> Result<Self, GraphError> {
        let mut parser = Parser {
            lexer: Lexer::new(hlo),
            builder: ModuleBuilder::new(limits),
            callees: ComputationIds::default(),
            shapes: Shapes::default(),
            pending: PendingComputations::default(),
            nodes: 0,
            references: 0,
            predecessors: 0,
            elements: 0,
            depth: 0,
        };
        let read = parser.module();
        // A comment that is never closed swallows tokens, so it is the cause of an error about a
        // missing token and is reported in place of that error.
        parser.lexer.check()?;
        read?;
        // A callee may stand below its user, so only the end of the text shows which names are
        // missing.
        parser.callees.check(&parser.lexer)?;
        parser.builder.finish()
    }
}

/// Returns the name of a module whose text is valid.
pub(crate) fn module_name(text: &str) -> &str {
    let mut lexer = Lexer::new(text);
    if lexer.word() == "HloModule" {
        lexer.pattern().unwrap_or_default()
    } else {
        ""
    }
}

/// The state of reading a module.
pub(super) struct Parser<'a, 'l> {
    pub(super) lexer: Lexer<'a>,
    pub(super) builder: ModuleBuilder<'a, 'l>,
    pub(super) callees: ComputationIds<'a>,
    pub(super) shapes: Shapes,
    pub(super) pending: PendingComputations<'a>,
    /// Instructions so far, including those of open computations.
    nodes: usize,
    /// Operands and callees so far.
    references: usize,
    /// Control predecessors so far.
    predecessors: usize,
    /// Elements of tuples so far that the text only implies.
    elements: usize,
    /// Number of open computations, and of open instructions in place of operands.
    pub(super) depth: usize,
}

impl<'a> Parser<'a, '_> {
    fn module(&mut self) -> Result<(), GraphError> {
        // `HloModule name, attributes`.
        if !self.is_computation_next() {
            self.lexer.expect("HloModule")?;
            self.lexer.pattern()?;
            while self.lexer.eat(",") {
                let key = self.attribute_key()?;
                let value = self.lexer.position();
                self.lexer.skip_value()?;
                if key == "is_scheduled" && self.lexer.since(value).trim() == "true" {
                    self.builder.set_scheduled();
                }
            }
        }
        let mut entry = None;
        let mut last = None;
        while !self.lexer.is_at_end() {
            // A table of source locations, which no feature uses. Each row of it is one line that
            // begins with its number.
            let start = self.lexer.position();
            if TABLES.contains(&self.lexer.word()) {
                while self.lexer.peek().is_ascii_digit() {
                    self.lexer.skip_value()?;
                }
            } else {
                self.lexer.return_to(start);
                last = Some(self.computation(&mut entry)?);
            }
        }
        // As in XLA, the last computation is the entry if none is marked.
        if let Some(id) = entry.or(last) {
            self.builder.set_entry(id);
        }
        Ok(())
    }

    /// Returns whether the text begins with a computation. XLA reads a module without its first line too.
    fn is_computation_next(&mut self) -> bool {
        let start = self.lexer.position();
        let word = self.lexer.name("a computation").unwrap_or_default();
        // The name of a module follows `HloModule` without a bracket, so a bracket after the word
        // tells the two apart.
        let is_computation =
            word == "ENTRY" || !word.is_empty() && matches!(self.lexer.peek(), b'{' | b'(');
        self.lexer.return_to(start);
        is_computation
    }

    /// Reads the name of an attribute and the `=` after it.
    pub(super) fn attribute_key(&mut self) -> Result<&'a str, GraphError> {
        let key = self.lexer.name("an attribute")?;
        self.lexer.expect("=")?;
        Ok(key)
    }

    /// Reads `ENTRY %name (parameters) -> shape { instructions }`, and returns its id. Only the braces are required.
    fn computation(&mut self, entry: &mut Option<i64>) -> Result<i64, GraphError> {
        let start = self.lexer.position();
        let is_entry = self.lexer.eat_word("ENTRY");
        let position = self.lexer.position();
        let (name, id) = if self.lexer.peek() == b'{' {
            ("", self.callees.unnamed())
        } else {
            let name = self.lexer.name("a computation")?;
            (name, self.callees.define(name, position, &self.lexer)?)
        };
        if is_entry && entry.replace(id).is_some() {
            let name = shortened(name);
            return Err(self.lexer.error(start, TextError::SecondEntry { name }));
        }
        // The parameters and the root inside the braces say the same as `(parameters) -> shape`.
        if self.lexer.peek() == b'(' {
            self.lexer.skip_group()?;
            self.lexer.expect("->")?;
            shape(&mut self.lexer)?;
        }
        self.body(name, id)?;
        // Attributes of a computation, such as its execution thread, affect no feature.
        while self.lexer.eat(",") {
            self.attribute_key()?;
            self.lexer.skip_value()?;
        }
        Ok(id)
    }

    /// Reads the instructions of a computation, in braces.
    pub(super) fn body(&mut self, name: &'a str, id: i64) -> Result<(), GraphError> {
        let start = self.lexer.position();
        self.enter()?;
        self.lexer.expect("{")?;
        self.builder.check_computations()?;
        let mut computation = ParsedComputation::new(id);
        // XLA refuses a computation without instructions, so the first one is read before a `}` is
        // looked for.
        while computation.nodes.len() == 0 || !self.lexer.eat("}") {
            if self.lexer.is_at_end() {
                let unclosed = TextError::Unclosed { opening: '{' };
                return Err(self.lexer.error(start, unclosed));
            }
            self.instruction(&mut computation)?;
        }
        self.depth -= 1;
        self.pending.add(name, computation);
        // A computation inside another one stays pending, because a later step of the outer one may
        // still change it.
        if self.depth == 0 {
            self.add_pending()
        } else {
            Ok(())
        }
    }

    /// Goes one level deeper, into a computation or an instruction inside an instruction.
    pub(super) fn enter(&mut self) -> Result<(), GraphError> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let start = self.lexer.position();
        let too_deep = TextError::TooDeep { limit: MAX_DEPTH };
        Err(self.lexer.error(start, too_deep))
    }

    /// Returns a shape as the featurizer takes it.
    pub(super) fn shape_message(&mut self, shape: ShapeId) -> Result<ShapeProto, GraphError> {
        self.shapes.message(shape, &mut self.lexer)
    }

    /// Returns the shape of an instruction that does not write it. An array has few dimensions, and the elements of all tuples
    /// together are counted, as if they were written: a short line must not take the memory of a long list.
    pub(super) fn implied_shape(&mut self, shape: ShapeId) -> Result<ShapeProto, GraphError> {
        let shape = self.shapes.shared(shape, &mut self.lexer)?;
        if shape.dimensions.len() > MAX_RANK {
            let too_long = TextError::ListTooLong { limit: MAX_RANK };
            let position = self.lexer.position();
            return Err(self.lexer.error(position, too_long));
        }
        self.elements += shape.tuple_shapes.len();
        self.check_edges(self.elements)?;
        Ok(shape.as_ref().clone())
    }

    /// Counts one more instruction.
    pub(super) fn count_node(&mut self) -> Result<(), GraphError> {
        // The builder sees a computation only after its last instruction, so the parser counts for
        // itself and stops a text that is too large before its instructions take memory.
        pace::pause();
        self.nodes += 1;
        if self.nodes > self.builder.limits().nodes {
            return Err(GraphError::too_many_nodes(self.builder.limits()));
        }
        Ok(())
    }

    /// Counts one more operand or callee.
    pub(super) fn count_reference(&mut self) -> Result<(), GraphError> {
        self.references += 1;
        self.check_edges(self.references)
    }

    /// Counts one more control predecessor. They are not edges, but the same limit bounds them.
    pub(super) fn count_predecessor(&mut self) -> Result<(), GraphError> {
        self.predecessors += 1;
        self.check_edges(self.predecessors)
    }

    fn check_edges(&self, count: usize) -> Result<(), GraphError> {
        let limits = self.builder.limits();
        if count > limits.edges {
            Err(GraphError::too_many_edges(limits))
        } else {
            Ok(())
        }
    }
}

/// Ids of the computations of a module. A name may be used before its computation is defined.
#[derive(Default)]
pub(super) struct ComputationIds<'a> {
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

impl<'a> ComputationIds<'a> {
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
    fn define(
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
    fn check(&self, lexer: &Lexer<'_>) -> Result<(), GraphError> {
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
