use super::{callees::Callees, computation::Computation, lexer::Lexer, shape::shape};
use crate::{GraphError, HloModule, Limits, TextError, module::ModuleBuilder};

/// Tables of source locations, which may precede the computations.
const TABLES: [&str; 4] = ["FileNames", "FunctionNames", "FileLocations", "StackFrames"];

/// Maximum depth of computations inside instructions of computations.
const MAX_DEPTH: usize = 32;

impl<'a> HloModule<'a> {
    /// Reads HLO text, as XLA prints it. The result is the module that XLA's own parser makes of the text: computations
    /// keep the order of the text, and instructions have the order in which XLA serializes them.
    pub fn read_text(hlo: &'a str, limits: &Limits) -> Result<Self, GraphError> {
        let mut parser = Parser {
            lexer: Lexer::new(hlo),
            builder: ModuleBuilder::new(limits),
            callees: Callees::default(),
            nodes: 0,
            references: 0,
            predecessors: 0,
            depth: 0,
        };
        let read = parser.module();
        // The cause, if a token is missing because a comment has swallowed it.
        parser.lexer.check()?;
        read?;
        parser.callees.check(&parser.lexer)?;
        parser.builder.finish()
    }
}

/// Returns the name of a module whose text is valid.
pub(crate) fn module_name(text: &str) -> &str {
    let mut lexer = Lexer::new(text);
    lexer.word();
    lexer.pattern().unwrap_or_default()
}

/// The state of reading a module.
pub(super) struct Parser<'a, 'l> {
    pub(super) lexer: Lexer<'a>,
    pub(super) builder: ModuleBuilder<'a, 'l>,
    pub(super) callees: Callees<'a>,
    /// Instructions so far, including those of open computations.
    nodes: usize,
    /// Operands and callees so far.
    references: usize,
    /// Control predecessors so far.
    predecessors: usize,
    /// Number of open computations.
    depth: usize,
}

impl<'a> Parser<'a, '_> {
    fn module(&mut self) -> Result<(), GraphError> {
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
        while !self.lexer.is_at_end() {
            if !self.skip_table()? {
                self.computation()?;
            }
        }
        Ok(())
    }

    /// Reads the name of an attribute and the `=` after it.
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

    /// Reads `ENTRY %name (parameters) -> shape { instructions }`. Only the braces are required.
    fn computation(&mut self) -> Result<(), GraphError> {
        let start = self.lexer.position();
        let is_entry = self.lexer.word() == "ENTRY";
        if !is_entry {
            self.lexer.return_to(start);
        }
        let position = self.lexer.position();
        let (name, id) = if self.lexer.peek() == b'{' {
            ("", self.callees.unnamed())
        } else {
            let name = self.lexer.name("a computation")?;
            (name, self.callees.define(name, position, &self.lexer)?)
        };
        if is_entry {
            self.builder.set_entry(id);
        }
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

    /// Reads the instructions of a computation, in braces.
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

    /// Counts one more control predecessor. They are not edges, but the same limit bounds them.
    pub(super) fn count_predecessor(&mut self) -> Result<(), GraphError> {
        self.predecessors += 1;
        self.check_edges(self.predecessors)
    }

    fn check_edges(&self, count: usize) -> Result<(), GraphError> {
        let limits = self.builder.limits();
        if count > limits.edges { Err(GraphError::too_many_edges(limits)) } else { Ok(()) }
    }
}
