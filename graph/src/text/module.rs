use super::{callees::Callees, computation::Computation, lexer::Lexer, shape::shape};
use crate::{GraphError, HloModule, Limits, TextError, module::ModuleBuilder};

/// Tables of source locations that may stand before the computations.
const TABLES: [&str; 4] = ["FileNames", "FunctionNames", "FileLocations", "StackFrames"];

/// Computations may stand inside instructions of computations so deep.
const MAX_DEPTH: usize = 32;

/// Reads HLO text.
pub(crate) fn read<'a>(text: &'a str, limits: &Limits) -> Result<HloModule<'a>, GraphError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        builder: ModuleBuilder::new(limits),
        callees: Callees::default(),
        nodes: 0,
        references: 0,
        predecessors: 0,
        depth: 0,
    };
    parser.module()?;
    parser.callees.check(&parser.lexer)?;
    parser.builder.finish()
}

/// The name of a module that was read.
pub(crate) fn module_name(text: &str) -> &str {
    let mut lexer = Lexer::new(text);
    lexer.word();
    lexer.pattern().unwrap_or_default()
}

/// What is known while a module is being read.
pub(super) struct Parser<'a, 'l> {
    pub(super) lexer: Lexer<'a>,
    pub(super) builder: ModuleBuilder<'a, 'l>,
    pub(super) callees: Callees<'a>,
    /// Instructions until now, those of open computations included.
    nodes: usize,
    /// Operands and callees until now.
    references: usize,
    /// Control predecessors until now.
    predecessors: usize,
    /// Computations that are open.
    depth: usize,
}

impl<'a> Parser<'a, '_> {
    fn module(&mut self) -> Result<(), GraphError> {
        self.lexer.expect("HloModule")?;
        self.lexer.pattern()?;
        while self.lexer.eat(",") {
            self.attribute_key()?;
            self.lexer.skip_value()?;
        }
        while !self.lexer.is_at_end() {
            if !self.skip_table()? {
                self.computation()?;
            }
        }
        Ok(())
    }

    /// The name of an attribute; its `=` is read too.
    pub(super) fn attribute_key(&mut self) -> Result<&'a str, GraphError> {
        let key = self.lexer.name("an attribute")?;
        self.lexer.expect("=")?;
        Ok(key)
    }

    fn skip_table(&mut self) -> Result<bool, GraphError> {
        let start = self.lexer.position();
        if !TABLES.contains(&self.lexer.word()) {
            self.lexer.return_to(start);
            return Ok(false);
        }
        while self.lexer.peek().is_ascii_digit() {
            self.lexer.skip_value()?;
        }
        Ok(true)
    }

    /// `ENTRY %name (parameters) -> shape { instructions }`, where only the braces must be there.
    fn computation(&mut self) -> Result<(), GraphError> {
        let start = self.lexer.position();
        if self.lexer.word() != "ENTRY" {
            self.lexer.return_to(start);
        }
        let position = self.lexer.position();
        let (name, id) = if self.lexer.peek() == b'{' {
            ("", self.callees.unnamed())
        } else {
            let name = self.lexer.name("a computation")?;
            (name, self.callees.define(name, position, &self.lexer)?)
        };
        if self.lexer.peek() == b'(' {
            self.lexer.skip_group()?;
            self.lexer.expect("->")?;
            shape(&mut self.lexer)?;
        }
        self.body(name, id)?;
        while self.lexer.eat(",") {
            self.attribute_key()?;
            self.lexer.skip_value()?;
        }
        Ok(())
    }

    /// The instructions of a computation, in braces.
    pub(super) fn body(&mut self, name: &str, id: i64) -> Result<(), GraphError> {
        let start = self.lexer.position();
        if self.depth >= MAX_DEPTH {
            return Err(self.lexer.error(start, TextError::TooDeep { limit: MAX_DEPTH }));
        }
        self.lexer.expect("{")?;
        self.builder.check_computations()?;
        self.depth += 1;
        let mut computation = Computation::new(id);
        while computation.nodes.len() == 0 || !self.lexer.eat("}") {
            if self.lexer.is_at_end() {
                return Err(self.lexer.error(start, TextError::Unclosed { opening: '{' }));
            }
            self.instruction(&mut computation)?;
        }
        self.depth -= 1;
        computation.close(name, &mut self.builder)
    }

    /// Counts one more instruction.
    pub(super) fn count_node(&mut self) -> Result<(), GraphError> {
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

    /// Counts one more control predecessor; they are no edges, but there may be as many.
    pub(super) fn count_predecessor(&mut self) -> Result<(), GraphError> {
        self.predecessors += 1;
        self.check_edges(self.predecessors)
    }

    fn check_edges(&self, count: usize) -> Result<(), GraphError> {
        let limits = self.builder.limits();
        if count > limits.edges { Err(GraphError::too_many_edges(limits)) } else { Ok(()) }
    }
}
