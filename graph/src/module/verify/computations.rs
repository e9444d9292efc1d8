use super::arrays::{is_same, is_same_type, shown};
use crate::{
    ModuleFault,
    module::{
        computations::{Computation, Computations},
        nodes::Nodes,
        shapes::NodeShape,
    },
    opcode::opcode_name,
    shortened,
    syntax::TUPLE,
};

/// The computations that an opcode calls.
enum Calls {
    /// One computation with the operands as arguments, whose root is the result.
    Body,
    /// Two computations of one argument, of which one gives the next argument.
    Loop,
    /// A computation for every operand but the first.
    Branches,
    /// As many computations as the first number says, with as many arguments as the second.
    Applied(usize, usize),
    /// Anything.
    Any,
}

impl Calls {
    /// Returns the number of computations that an instruction with this number of operands calls;
    /// `None` if it may be any.
    fn callees(&self, operands: usize) -> Option<usize> {
        match *self {
            Self::Body => Some(1),
            Self::Loop => Some(2),
            // The first operand chooses the branch.
            Self::Branches => Some(operands - 1),
            Self::Applied(count, _) => Some(count),
            Self::Any => None,
        }
    }
}

/// Returns the parameters by number. They must be numbered from 0, each number once.
pub(in crate::module) fn check_parameters(
    mut numbered: Vec<(i64, u32)>,
) -> Result<Vec<u32>, ModuleFault> {
    numbered.sort_unstable();
    match numbered
        .iter()
        .zip(0_i64..)
        .position(|((number, _), expected)| *number != expected)
    {
        Some(missing) => Err(ModuleFault::Parameters {
            count: numbered.len(),
            missing,
        }),
        None => Ok(numbered.into_iter().map(|(_, node)| node).collect()),
    }
}

/// Checks what a node passes to the computations that it calls. `operands` are its operands, and all callees exist.
pub(in crate::module) fn check_calls(
    node: usize,
    operands: &[u32],
    nodes: &Nodes<'_>,
    computations: &Computations,
) -> Result<(), ModuleFault> {
    let callees = nodes.references.callees(node).iter();
    let callees: Vec<&Computation> = callees.filter_map(|&id| computations.get(id)).collect();
    let calls = calls(nodes.opcode(node), operands.len());
    // The arms below rely on the number of callees, so it is checked first.
    if let Some(expected) = calls.callees(operands.len()) {
        expect_callees(callees.len(), expected)?;
    }
    let mut each = callees.iter();
    match calls {
        Calls::Any => Ok(()),
        // What the arguments are depends on the opcode, so only their number is checked.
        Calls::Applied(_, arguments) => {
            each.try_for_each(|callee| expect_arguments(callee, arguments))
        }
        Calls::Branches => each
            .zip(operands[1..].chunks(1))
            .try_for_each(|(callee, operand)| check_arguments(callee, operand, nodes)),
        Calls::Loop => each.try_for_each(|callee| check_arguments(callee, operands, nodes)),
        Calls::Body => {
            check_arguments(callees[0], operands, nodes)?;
            check_result(node, callees[0], nodes)
        }
    }
}

/// Returns the computations of an opcode with this number of operands, which is valid.
fn calls(opcode: u8, operands: usize) -> Calls {
    match opcode_name(opcode) {
        "call" | "fusion" => Calls::Body,
        "while" => Calls::Loop,
        "conditional" => Calls::Branches,
        // A map gets one element of each operand; a reduction gets an accumulated value and an
        // element of each array, and has as many operands: the arrays and their initial values.
        "map" | "reduce" | "reduce-window" => Calls::Applied(1, operands),
        // All operands but the indices are arrays and their updates.
        "scatter" => Calls::Applied(1, operands - 1),
        // A sort compares two elements of each array.
        "sort" => Calls::Applied(1, 2 * operands),
        // One computation selects between two elements, and one combines two.
        "select-and-scatter" => Calls::Applied(2, 2),
        _ => Calls::Any,
    }
}

fn expect_callees(found: usize, expected: usize) -> Result<(), ModuleFault> {
    let what = "called computations";
    if found == expected {
        Ok(())
    } else {
        Err(ModuleFault::Count {
            what,
            found,
            expected,
        })
    }
}

fn expect_arguments(callee: &Computation, found: usize) -> Result<(), ModuleFault> {
    let expected = callee.parameters.len();
    if found == expected {
        return Ok(());
    }
    Err(ModuleFault::Arguments {
        callee: shortened(&callee.name),
        found,
        expected,
    })
}

/// Checks that operands are what a computation takes.
fn check_arguments(
    callee: &Computation,
    operands: &[u32],
    nodes: &Nodes<'_>,
) -> Result<(), ModuleFault> {
    expect_arguments(callee, operands.len())?;
    for (number, (&operand, &parameter)) in operands.iter().zip(&callee.parameters).enumerate() {
        let pair = [operand, parameter].map(|node| nodes.shapes.get(node as usize));
        let [Some(outside), Some(inside)] = pair else {
            continue;
        };
        let names = || (format!("operand {number}"), format!("parameter {number}"));
        expect_equal(callee, [outside, inside], names)?;
    }
    Ok(())
}

fn check_result(node: usize, callee: &Computation, nodes: &Nodes<'_>) -> Result<(), ModuleFault> {
    let pair = [Some(node), callee.root].map(|node| nodes.shapes.get(node?));
    let [Some(outside), Some(inside)] = pair else {
        return Ok(());
    };
    expect_equal(callee, [outside, inside], || {
        ("its result".to_owned(), "the root".to_owned())
    })
}

fn expect_equal(
    callee: &Computation,
    [outside, inside]: [NodeShape<'_>; 2],
    names: impl FnOnce() -> (String, String),
) -> Result<(), ModuleFault> {
    if is_equal(outside, inside) {
        return Ok(());
    }
    let (what, name) = names();
    Err(ModuleFault::CalledShape {
        what,
        found: describe(outside),
        inside: name,
        expected: describe(inside),
        callee: shortened(&callee.name),
    })
}

fn is_equal(left: NodeShape<'_>, right: NodeShape<'_>) -> bool {
    // Dimensions that are not kept, because they are too many, are taken for equal.
    let dimensions = left.dimensions.zip(right.dimensions);
    let is_same_array = dimensions.is_none_or(|(left, right)| is_same(left, right));
    is_same_type(left.element_type, right.element_type)
        && left.elements == right.elements
        && is_same_array
}

fn describe(shape: NodeShape<'_>) -> String {
    match shape.element_type {
        TUPLE => format!("a tuple of {} elements", shape.elements),
        element_type => format!(
            "{} of type {element_type}",
            shown(shape.dimensions.unwrap_or_default())
        ),
    }
}
