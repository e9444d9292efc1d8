use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;

use super::{
    computations::Computations,
    hlo_module::HloModule,
    nodes::{Nodes, Origin},
    references::UNRESOLVED,
    verify::{check_calls, check_instruction, check_parameters},
};
use crate::{GraphError, Limits, ModuleFault, pace, shortened};

/// Substrings of computation names. `TpuGraphs` puts a node split after such a computation (spec §3).
const SPLIT_NAMES: [&str; 3] = ["cluster", "while", "cond"];

/// Collects the computations of a module one after the other, from protobuf or from text.
pub(crate) struct ModuleBuilder<'a, 'l> {
    limits: &'l Limits,
    nodes: Nodes<'a>,
    nodes_by_id: HashMap<i64, u32>,
    node_splits: Vec<usize>,
    unknown_opcodes: BTreeMap<String, usize>,
    computations: Computations,
    /// Whether no instruction has a name so far. XLA names every instruction, and every module has an entry. A module with
    /// neither only lists values for the featurizer, and no rules hold for it.
    is_list: bool,
    /// The first rule that instructions without names break.
    broken: Option<GraphError>,
    /// Nodes that were read before their operands, with the ids of their computations.
    unchecked: Vec<(usize, i64)>,
}

/// Returns the error of a computation that XLA would refuse.
fn invalid_computation(name: &str, fault: ModuleFault) -> GraphError {
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
        let checked = self
            .check_computation()
            .map_err(|fault| invalid_computation(name, fault));
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
        let root = self
            .nodes_by_id
            .get(&open.root_id)
            .map(|&node| node as usize);
        open.root = root.filter(|root| open.nodes.contains(root));
        if open.root.is_none() {
            return Err(ModuleFault::NoRoot { id: open.root_id });
        }
        let numbered = open.nodes.clone().zip((0..).skip(open.nodes.start));
        let numbered =
            numbered.filter_map(|(at, node)| Some((self.nodes.parameter_number(at)?, node)));
        open.parameters = check_parameters(numbered.collect())?;
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
        let references = instruction.operand_ids.len() + instruction.called_computation_ids.len();
        if self.nodes.references.count() + references > self.limits.edges {
            return Err(GraphError::too_many_edges(self.limits));
        }
        let opcode = self.nodes.push(instruction, is_root, origin);
        if opcode == 0 {
            self.count_unknown(&instruction.opcode);
        }
        let node = self.nodes.len() - 1;
        self.is_list &= instruction.name.is_empty();
        if !self.is_list
            && let Some(broken) = self.broken.take()
        {
            return Err(broken);
        }
        let checked = self.check(instruction, opcode, node);
        let checked = checked.map_err(|fault| self.invalid(node, instruction, fault));
        self.refuse_unless_list(checked)
    }

    /// Checks the last instruction. If an operand is read later, checks that depend on operands wait for the end.
    fn check(
        &mut self,
        instruction: &HloInstructionProto,
        opcode: u8,
        node: usize,
    ) -> Result<(), ModuleFault> {
        let start = self.computations.open().map_or(0, |open| open.nodes.start);
        let resolved = self.nodes.references.operand_nodes_mut(node);
        let mut is_behind = false;
        for (position, (operand, id)) in resolved
            .iter_mut()
            .zip(&instruction.operand_ids)
            .enumerate()
        {
            match self.nodes_by_id.get(id) {
                Some(&found) if (found as usize) < start => {
                    return Err(ModuleFault::OtherComputation { operand: position });
                }
                Some(&found) => *operand = found,
                None => is_behind = true,
            }
        }
        if is_behind {
            self.unchecked
                .extend(self.computations.open_id().map(|id| (node, id)));
        }
        let operands = (!is_behind).then(|| self.nodes.references.operand_nodes(node));
        check_instruction(instruction, opcode, operands, &self.nodes.shapes)
    }

    fn invalid(
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

    pub(crate) fn finish(mut self) -> Result<HloModule<'a>, GraphError> {
        if self.nodes.len() == 0 {
            return Err(GraphError::Empty);
        }
        if self.node_splits.last() < Some(&self.nodes.len()) {
            self.node_splits.push(self.nodes.len());
        }
        let has_rules = !self.is_list || self.computations.entry_id.is_some_and(|id| id != 0);
        if let Some(broken) = self.broken.take().filter(|_| has_rules) {
            return Err(broken);
        }
        let edges = self.edges()?;
        if has_rules {
            self.check_operands_behind()?;
            self.check_calls()?;
            self.check_entry()?;
        }
        let mut arrays = self.nodes.take_arrays();
        arrays.edges = edges;
        Ok(HloModule {
            arrays,
            node_splits: self.node_splits,
            unknown_opcodes: self.unknown_opcodes,
            computations: self.computations,
            nodes: self.nodes,
            nodes_by_id: self.nodes_by_id,
        })
    }

    /// Checks the instructions that were read before their operands. All operands exist.
    fn check_operands_behind(&self) -> Result<(), GraphError> {
        for &(node, computation) in &self.unchecked {
            pace::pause();
            let Some(instruction) = self.nodes.origins[node].instruction() else {
                continue;
            };
            let operands = self.operand_nodes(node)?;
            let nodes = self
                .computations
                .get(computation)
                .map_or(0..0, |computation| computation.nodes.clone());
            let holds = |operand: &u32| nodes.contains(&(*operand as usize));
            let outside = operands.iter().position(|operand| !holds(operand));
            let checked = match outside {
                Some(operand) => Err(ModuleFault::OtherComputation { operand }),
                None => check_instruction(
                    &instruction,
                    self.nodes.opcode(node),
                    Some(&operands),
                    &self.nodes.shapes,
                ),
            };
            checked.map_err(|fault| self.invalid(node, &instruction, fault))?;
        }
        Ok(())
    }

    fn check_calls(&self) -> Result<(), GraphError> {
        for node in
            (0..self.nodes.len()).filter(|&node| !self.nodes.references.callees(node).is_empty())
        {
            pace::pause();
            let operands = self.operand_nodes(node)?;
            check_calls(node, &operands, &self.nodes, &self.computations).map_err(|fault| {
                let instruction = self.nodes.origins[node].instruction().unwrap_or_default();
                self.invalid(node, &instruction, fault)
            })?;
        }
        Ok(())
    }

    fn check_entry(&self) -> Result<(), GraphError> {
        if let Some(empty) = self.computations.empty() {
            return Err(invalid_computation(
                &empty.name,
                ModuleFault::NoInstructions,
            ));
        }
        match self.computations.entry_id {
            Some(id) if id != 0 && self.computations.get(id).is_none() => {
                let fault = ModuleFault::NoEntry { id };
                Err(GraphError::InvalidModule {
                    place: "the module".to_owned(),
                    fault: Box::new(fault),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the nodes of the operands of a node, in order.
    fn operand_nodes(&self, node: usize) -> Result<Vec<u32>, GraphError> {
        let references = &self.nodes.references;
        let number = u32::try_from(node).unwrap_or(u32::MAX);
        let operands = references
            .operands(node)
            .iter()
            .zip(references.operand_nodes(node));
        operands
            .map(|(&id, &operand)| self.operand(number, id, operand))
            .collect()
    }

    /// Returns the edges to operands and to the roots of callees, sorted and without duplicates.
    fn edges(&self) -> Result<Vec<[u32; 2]>, GraphError> {
        let references = &self.nodes.references;
        let mut edges = Vec::with_capacity(references.count());
        for (position, node) in pace::in_steps(64, (0..self.nodes.len()).zip(0..)) {
            let first = edges.len();
            for (&id, &operand) in references
                .operands(position)
                .iter()
                .zip(references.operand_nodes(position))
            {
                edges.push([node, self.operand(node, id, operand)?]);
            }
            for &id in references.callees(position) {
                edges.push([node, self.callee_root(node, id)?]);
            }
            edges[first..].sort_unstable();
        }
        edges.dedup();
        Ok(edges)
    }

    /// Returns the node of an operand, which is looked up if it was not known when its user was read.
    fn operand(&self, node: u32, id: i64, resolved: u32) -> Result<u32, GraphError> {
        if resolved != UNRESOLVED {
            return Ok(resolved);
        }
        self.nodes_by_id
            .get(&id)
            .copied()
            .ok_or(GraphError::UnknownOperand { node, id })
    }

    fn callee_root(&self, node: u32, id: i64) -> Result<u32, GraphError> {
        let computation = self.computations.get(id);
        let root = computation.and_then(|called| self.nodes_by_id.get(&called.root_id));
        root.copied().ok_or(GraphError::UnknownCallee { node, id })
    }
}
