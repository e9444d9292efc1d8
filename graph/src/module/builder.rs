use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use super::nodes::{Nodes, Origin};
use crate::{
    GraphError, Limits, ModuleFault,
    opcode::least_operands,
    pace, shortened,
    syntax::{BUFFER, TUPLE, UNBOUNDED, has_layout, is_permutation},
};

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
    /// Number of closed computations.
    closed: usize,
    /// Whether no instruction has a name so far. XLA names every instruction, and every module has an entry. A module with
    /// neither only lists values for the featurizer, and no rules hold for it.
    pub(super) is_list: bool,
    /// The first rule that instructions without names break.
    pub(super) broken: Option<GraphError>,
}

/// The computations of a module.
#[derive(Debug, Default)]
pub(crate) struct Computations {
    /// Whether the module lists its instructions in the order of execution, as a compiled module does.
    pub(crate) is_scheduled: bool,
    /// Id of the entry computation, if the module names it.
    pub(super) entry_id: Option<i64>,
    /// In the order of the module.
    pub(super) all: Vec<Computation>,
    by_id: HashMap<i64, usize>,
}

/// A computation: the nodes that it has, and the id of its root instruction.
#[derive(Debug)]
pub(crate) struct Computation {
    /// The start of its name, for messages. In full, it could take as much memory as the module.
    pub(super) name: String,
    pub(crate) root_id: i64,
    /// Its nodes. The end is set when it closes.
    pub(crate) nodes: Range<usize>,
}

impl Computations {
    /// Returns the entry computation, which has id 0 unless the module names another.
    pub(crate) fn entry(&self) -> Option<&Computation> {
        self.get(self.entry_id.unwrap_or(0))
    }

    /// Returns the computation with this id.
    pub(crate) fn get(&self, id: i64) -> Option<&Computation> {
        self.by_id.get(&id).map(|&position| &self.all[position])
    }
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
            closed: 0,
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
        self.closed
    }

    /// Opens a computation, to which the nodes that follow belong.
    pub(crate) fn begin(&mut self, name: &str, id: i64, root_id: i64) -> Result<(), GraphError> {
        self.check_computations()?;
        let Computations { all, by_id, .. } = &mut self.computations;
        if by_id.insert(id, all.len()).is_some() {
            return Err(GraphError::DuplicateComputation {
                id,
                name: shortened(name),
            });
        }
        let start = self.nodes.len();
        all.push(Computation {
            name: shortened(name),
            root_id,
            nodes: start..start,
        });
        Ok(())
    }

    /// Checks that the limits allow one more computation.
    pub(crate) fn check_computations(&self) -> Result<(), GraphError> {
        if self.closed < self.limits.nodes {
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
        let checked = self.close_computation();
        let checked = checked.map_err(|fault| invalid_computation(name, fault));
        self.refuse_unless_list(checked)?;
        self.closed += 1;
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
    fn close_computation(&mut self) -> Result<(), ModuleFault> {
        let Some(open) = self.computations.all.last_mut() else {
            return Ok(());
        };
        open.nodes.end = self.nodes.len();
        if open.nodes.is_empty() {
            return Ok(());
        }
        // An id names one node of the whole module, which need not be in this computation.
        let root = self.nodes_by_id.get(&open.root_id);
        if root.is_none_or(|&root| !open.nodes.contains(&(root as usize))) {
            return Err(ModuleFault::NoRoot { id: open.root_id });
        }
        check_parameters(self.nodes.parameter_numbers(open.nodes.clone()))
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
        if self.nodes.references() + references > self.limits.edges {
            return Err(GraphError::too_many_edges(self.limits));
        }
        let opcode = self.nodes.push(instruction, is_root, origin);
        if opcode == 0 {
            self.count_unknown(&instruction.opcode);
        }
        // The first name shows that the module is no list of values, so the error that was kept
        // counts.
        self.is_list &= instruction.name.is_empty();
        if let Some(broken) = self.broken.take_if(|_| !self.is_list) {
            return Err(broken);
        }
        let checked = check_instruction(instruction, opcode);
        let checked = checked.map_err(|fault| self.invalid(instruction, fault));
        self.refuse_unless_list(checked)
    }

    /// Returns the error of the last node, which XLA would refuse.
    fn invalid(&self, instruction: &HloInstructionProto, fault: ModuleFault) -> GraphError {
        let node = self.nodes.len() - 1;
        let [name, opcode] = [&instruction.name, &instruction.opcode].map(|name| shortened(name));
        let computation = self.computations.all.last();
        let computation = computation.map_or("", |computation| &computation.name);
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

/// Maximum number of dimensions in a message.
const MAX_SHOWN: usize = 16;

/// Checks that an instruction has a possible shape and the operands that its opcode needs.
pub(crate) fn check_instruction(
    instruction: &HloInstructionProto,
    opcode: u8,
) -> Result<(), ModuleFault> {
    check_shape(instruction.shape.as_ref().ok_or(ModuleFault::NoShape)?)?;
    let found = instruction.operand_ids.len();
    let least = least_operands(opcode);
    if found < least {
        return Err(ModuleFault::Operands { least, found });
    }
    Ok(())
}

fn check_shape(shape: &ShapeProto) -> Result<(), ModuleFault> {
    if shape.element_type <= 0 {
        return Err(ModuleFault::ElementType {
            found: shape.element_type,
        });
    }
    // A buffer has both dimensions and an element, and so may types that are newer.
    let is_array = shape.element_type < BUFFER && has_layout(shape.element_type);
    if is_array && !shape.tuple_shapes.is_empty()
        || shape.element_type == TUPLE && !shape.dimensions.is_empty()
    {
        return Err(ModuleFault::ArrayAndTuple);
    }
    let sizes = shape.dimensions.iter().enumerate();
    if let Some((dimension, &size)) = sizes
        .into_iter()
        .find(|(_, size)| **size < 0 && **size != UNBOUNDED)
    {
        return Err(ModuleFault::NegativeSize { dimension, size });
    }
    // A shape without a layout has the default one, and so has one whose layout lists nothing.
    let layout = shape.layout.as_ref();
    let order = layout.map_or(&[][..], |layout| &layout.minor_to_major);
    let rank = shape.dimensions.len();
    if order.is_empty() || is_permutation(order, rank) {
        return Ok(());
    }
    let found = order[..order.len().min(MAX_SHOWN)].to_vec();
    Err(ModuleFault::Layout { found, rank })
}

/// Checks the numbers of the parameters of a computation: they begin with 0, and each is there once.
fn check_parameters(mut numbers: Vec<i64>) -> Result<(), ModuleFault> {
    numbers.sort_unstable();
    let mut expected = numbers.iter().zip(0..);
    match expected.position(|(&number, expected)| number != expected) {
        Some(missing) => Err(ModuleFault::Parameters {
            count: numbers.len(),
            missing,
        }),
        None => Ok(()),
    }
}
