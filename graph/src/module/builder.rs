use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;

use super::{
    computations::Computations,
    nodes::{Nodes, Origin},
    verify::{check_instruction, check_parameters},
};
use crate::{GraphError, Limits, ModuleFault, pace, shortened};

/// Substrings of computation names. `TpuGraphs` puts a node split after such a computation (spec §3).
const SPLIT_NAMES: [&str; 3] = ["cluster", "while", "cond"];

/// Collects the computations of a module one after the other, from protobuf or from text.
pub(crate) struct ModuleBuilder<'a, 'l> {
    limits: &'l Limits,
    pub(super) nodes: Nodes<'a>,
    pub(super) nodes_by_id: HashMap<i64, u32>,
    pub(super) node_splits: Vec<usize>,
    pub(super) unknown_opcodes: BTreeMap<String, usize>,
    pub(super) computations: Computations,
    /// Whether no instruction has a name so far. XLA names every instruction, and every module has an entry. A module with
    /// neither only lists values for the featurizer, and no rules hold for it.
    pub(super) is_list: bool,
    /// The first rule that instructions without names break.
    pub(super) broken: Option<GraphError>,
    /// Nodes that were read before their operands.
    pub(super) unchecked: Vec<Unchecked>,
}

/// A node that was read before its operands, and the id of its computation.
#[derive(Clone, Copy)]
pub(super) struct Unchecked {
    pub(super) node: usize,
    pub(super) computation: i64,
}

/// Returns the error of a computation that XLA would refuse.
pub(super) fn invalid_computation(name: &str, fault: ModuleFault) -> GraphError {
    GraphError::InvalidModule {
        place: format!("computation `{}`", shortened(name)),
        fault: Box::new(fault),
    }
}

impl<'a, 'l> ModuleBuilder<'a, 'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            nodes: Nodes::default(),
            nodes_by_id: HashMap::new(),
            node_splits: vec![0],
            unknown_opcodes: BTreeMap::new(),
            computations: Computations::default(),
            unchecked: Vec::new(),
            is_list: true,
            broken: None,
        }
    }

    pub(crate) fn limits(&self) -> &'l Limits {
        self.limits
    }

    /// Returns the number of nodes so far.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of closed computations.
    pub(crate) fn computations(&self) -> usize {
        self.computations.len()
    }

    /// Opens a computation, to which the nodes that follow belong.
    pub(crate) fn begin(&mut self, name: &str, id: i64, root_id: i64) -> Result<(), GraphError> {
        self.check_computations()?;
        if self.computations.begin(name, id, root_id, self.nodes.len()) {
            Ok(())
        } else {
            Err(GraphError::DuplicateComputation {
                id,
                name: shortened(name),
            })
        }
    }

    /// Checks that the limits allow one more computation.
    pub(crate) fn check_computations(&self) -> Result<(), GraphError> {
        if self.computations.len() < self.limits.nodes {
            Ok(())
        } else {
            Err(GraphError::too_many_computations(self.limits))
        }
    }

    /// Closes the computation, whose root and parameters must be sound.
    pub(crate) fn end(&mut self, name: &str) -> Result<(), GraphError> {
        if SPLIT_NAMES.iter().any(|split| name.contains(split)) {
            self.node_splits.push(self.nodes.len());
        }
        let checked = self.check_computation();
        let checked = checked.map_err(|fault| invalid_computation(name, fault));
        self.refuse_unless_list(checked)?;
        self.computations.end();
        Ok(())
    }

    /// Keeps an error until it is known whether the module is a list of values.
    fn refuse_unless_list(&mut self, checked: Result<(), GraphError>) -> Result<(), GraphError> {
        match checked {
            Err(error) if self.is_list => {
                self.broken.get_or_insert(error);
                Ok(())
            }
            checked => checked,
        }
    }

    /// Checks the computation that is open. One without instructions is reported at the end, if the module has others.
    fn check_computation(&mut self) -> Result<(), ModuleFault> {
        let Some(open) = self.computations.open() else {
            return Ok(());
        };
        open.nodes.end = self.nodes.len();
        if open.nodes.is_empty() {
            return Ok(());
        }
        // An id names one node of the whole module, which need not be in this computation.
        let root = self.nodes_by_id.get(&open.root_id);
        open.root = root
            .map(|&node| node as usize)
            .filter(|root| open.nodes.contains(root));
        if open.root.is_none() {
            return Err(ModuleFault::NoRoot { id: open.root_id });
        }
        open.parameters = check_parameters(self.nodes.parameters(open.nodes.clone()))?;
        Ok(())
    }

    /// Makes the computation with this id the entry of the module, whether it is read already or not.
    pub(crate) fn set_entry(&mut self, id: i64) {
        self.computations.entry_id = Some(id);
    }

    /// Notes that the module lists its instructions in the order of execution.
    pub(crate) fn set_scheduled(&mut self) {
        self.computations.is_scheduled = true;
    }

    /// Adds an instruction.
    pub(crate) fn push(
        &mut self,
        instruction: &HloInstructionProto,
        is_root: bool,
        origin: Origin<'a>,
    ) -> Result<(), GraphError> {
        pace::pause();
        self.register(instruction.id, &instruction.name)?;
        self.check_edges(instruction)?;
        let opcode = self.nodes.push(instruction, is_root, origin);
        if opcode == 0 {
            self.count_unknown(&instruction.opcode);
        }
        self.note_name(&instruction.name)?;
        let node = self.nodes.len() - 1;
        let checked = self.check(instruction, opcode, node);
        let checked = checked.map_err(|fault| self.invalid(node, instruction, fault));
        self.refuse_unless_list(checked)
    }

    /// Checks that the limits allow the references of one more instruction.
    fn check_edges(&self, instruction: &HloInstructionProto) -> Result<(), GraphError> {
        let references = instruction.operand_ids.len() + instruction.called_computation_ids.len();
        if self.nodes.references.count() + references > self.limits.edges {
            return Err(GraphError::too_many_edges(self.limits));
        }
        Ok(())
    }

    /// Notes whether an instruction has a name. The first name shows that the module is no list of
    /// values, so the error that was kept counts.
    fn note_name(&mut self, name: &str) -> Result<(), GraphError> {
        self.is_list &= name.is_empty();
        let is_list = self.is_list;
        self.broken.take_if(|_| !is_list).map_or(Ok(()), Err)
    }

    /// Checks the last instruction. If an operand is read later, checks that depend on operands wait for the end.
    fn check(
        &mut self,
        instruction: &HloInstructionProto,
        opcode: u8,
        node: usize,
    ) -> Result<(), ModuleFault> {
        let are_known = self.resolve_operands(node, &instruction.operand_ids)?;
        if !are_known && let Some(computation) = self.computations.open_id() {
            self.unchecked.push(Unchecked { node, computation });
        }
        let operands = are_known.then(|| self.nodes.references.operand_nodes(node));
        check_instruction(instruction, opcode, operands, &self.nodes.shapes)
    }

    /// Resolves the operands of a node that were read before it. Returns whether these are all of
    /// them.
    fn resolve_operands(&mut self, node: usize, ids: &[i64]) -> Result<bool, ModuleFault> {
        // The nodes of the open computation are the last ones, so a node before its start belongs
        // to another.
        let start = self.computations.open().map_or(0, |open| open.nodes.start);
        let resolved = self.nodes.references.operand_nodes_mut(node);
        let mut are_known = true;
        for (position, (operand, id)) in resolved.iter_mut().zip(ids).enumerate() {
            match self.nodes_by_id.get(id) {
                Some(&found) if (found as usize) < start => {
                    return Err(ModuleFault::OtherComputation { operand: position });
                }
                Some(&found) => *operand = found,
                None => are_known = false,
            }
        }
        Ok(are_known)
    }

    /// Returns the error of a node that XLA would refuse.
    pub(super) fn invalid(
        &self,
        node: usize,
        instruction: &HloInstructionProto,
        fault: ModuleFault,
    ) -> GraphError {
        let [name, opcode] = [&instruction.name, &instruction.opcode].map(|name| shortened(name));
        let computation = self
            .computations
            .of_node(node)
            .map_or("", |computation| &computation.name);
        let place = format!("node {node} (`{name}`, {opcode}) of computation `{computation}`");
        GraphError::InvalidModule {
            place,
            fault: Box::new(fault),
        }
    }

    /// Adds a copy of a node that is featurized already.
    pub(crate) fn copy(
        &mut self,
        id: i64,
        others: &Nodes<'a>,
        node: usize,
    ) -> Result<(), GraphError> {
        self.register(id, "")?;
        self.nodes.copy(others, node);
        Ok(())
    }

    /// Counts an opcode that is not in the table.
    pub(crate) fn count_unknown(&mut self, opcode: &str) {
        *self.unknown_opcodes.entry(shortened(opcode)).or_default() += 1;
    }

    fn register(&mut self, id: i64, name: &str) -> Result<(), GraphError> {
        let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        match self.nodes_by_id.insert(id, node) {
            None => Ok(()),
            Some(first) => Err(GraphError::DuplicateInstruction {
                id,
                first,
                second: node,
                name: shortened(name),
            }),
        }
    }
}
