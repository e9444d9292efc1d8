use std::collections::HashSet;

use super::{
    guess::{guess_dot, guess_operands},
    instruction::{DotDimensions, Instruction},
    nest::{Access, Index, LoopNest, Term},
};
use crate::{GraphArrays, arrays::OperandLists, features::COUNTED_OPCODES, pace};

/// Limits on a walk. A node counts again for each index by which it is reached, so that there may be many steps. What lies
/// beyond the limits is left out; no kernel of a compiler is near them.
const MAX_STEPS: usize = 1024;
const MAX_DEPTH: usize = 200;
const MAX_ACCESSES: usize = 64;
const MAX_REDUCTIONS: usize = 16;

/// Follows the loops of the result to the parameters.
struct Walk<'a> {
    /// The instructions of the entry computation.
    instructions: Vec<Instruction<'a>>,
    /// Node number of the first of them.
    start: usize,
    /// The instructions that were reached, and by which index.
    reached: HashSet<(usize, Index)>,
    nest: LoopNest,
}

impl LoopNest {
    /// Follows the loops of the kernel with these arrays.
    pub fn new(arrays: &GraphArrays) -> Self {
        if let Some(lists) = &arrays.operands {
            return Walk::new(arrays, lists).nest(lists.root(), true);
        }
        let lists = guess_operands(arrays);
        Walk::new(arrays, &lists).nest(lists.root(), false)
    }
}

impl<'a> Walk<'a> {
    fn new(arrays: &'a GraphArrays, lists: &'a OperandLists) -> Self {
        let instructions = lists.entry().zip(lists.instructions());
        let instructions = instructions.map(|(node, lists)| Instruction::new(arrays, node, lists));
        Self {
            instructions: instructions.collect(),
            start: lists.entry().start,
            reached: HashSet::new(),
            nest: LoopNest::default(),
        }
    }

    fn nest(mut self, root: usize, is_exact: bool) -> LoopNest {
        let root = root - self.start;
        let roots = match self.instructions[root].opcode {
            "tuple" => self.operands(root),
            _ => vec![root],
        };
        let elements = |root: &usize| -> f64 { to_f64(&self.sizes(*root)).iter().product() };
        // The first of the largest results has the loops, as all of them have in most kernels.
        let largest = roots.iter().rev().copied();
        let largest = largest.max_by(|one, other| elements(one).total_cmp(&elements(other)));
        let largest = largest.unwrap_or(root);
        self.nest.extents = to_f64(&self.sizes(largest));
        self.nest.rank = self.nest.extents.len();
        let term = |of| vec![Term { of, step: 1 }];
        let index: Index = (0..self.nest.rank).map(term).collect();
        self.access(largest, &index, true);
        for root in roots {
            let rank = self.sizes(root).len();
            if root != largest && rank == index.len() {
                self.access(root, &index, true);
            }
            self.follow(root, index.iter().take(rank).cloned().collect(), 0);
        }
        self.nest.nodes = self.instructions.len();
        let counts = COUNTED_OPCODES.map(|counted| {
            let same = self.instructions.iter();
            same.filter(|one| one.opcode == counted).count()
        });
        self.nest.opcodes = counts.to_vec();
        self.nest.is_exact = is_exact;
        self.nest
    }

    fn operands(&self, instruction: usize) -> Vec<usize> {
        let operands = self.instructions[instruction].lists.operands.iter();
        operands
            .map(|&operand| operand as usize - self.start)
            .collect()
    }

    fn sizes(&self, instruction: usize) -> Vec<i64> {
        self.instructions[instruction].sizes()
    }

    fn access(&mut self, instruction: usize, index: &Index, is_output: bool) {
        if self.nest.accesses.len() < MAX_ACCESSES {
            let sizes = to_f64(&self.sizes(instruction));
            let element = self.instructions[instruction].element();
            self.nest
                .accesses
                .push(Access::new(is_output, index.clone(), sizes, element));
        }
    }

    /// Returns the loops of a reduction of these extents.
    fn reduction(&mut self, extents: &[i64]) -> Option<Vec<usize>> {
        let extents = to_f64(extents);
        let same = |loops: &&Vec<usize>| {
            let found = loops.iter().map(|&of| self.nest.extents[of]);
            found.eq(extents.iter().copied())
        };
        if let Some(loops) = self.nest.reductions.iter().find(same) {
            return Some(loops.clone());
        }
        if self.nest.reductions.len() >= MAX_REDUCTIONS {
            return None;
        }
        let first = self.nest.extents.len();
        self.nest.extents.extend(extents);
        let loops: Vec<usize> = (first..self.nest.extents.len()).collect();
        self.nest.reductions.push(loops.clone());
        Some(loops)
    }

    /// Follows the result of an instruction, whose dimensions have these loops, to its operands.
    fn follow(&mut self, instruction: usize, mut index: Index, depth: usize) {
        pace::pause();
        let sizes = self.sizes(instruction);
        index.resize(sizes.len(), Vec::new());
        let is_beyond = depth > MAX_DEPTH || self.reached.len() >= MAX_STEPS;
        if is_beyond || !self.reached.insert((instruction, index.clone())) {
            return;
        }
        let operands = self.operands(instruction);
        let found = match self.instructions[instruction].opcode {
            "parameter" => return self.access(instruction, &index, false),
            "constant" | "iota" => return,
            "transpose" => self.transpose(instruction, &operands, &index),
            "broadcast" => self.broadcast(instruction, &operands, &index),
            "reshape" => self.reshape(&operands, &sizes, &index),
            "reduce" => self.reduce(instruction, &operands, &index),
            "reduce-window" => self.reduce_window(instruction, &operands, &index),
            "dot" => self.dot(instruction, &operands, &sizes, &index),
            "convolution" => self.convolution(instruction, &operands, &sizes, &index),
            _ => None,
        };
        // Of any other instruction, an operand of the same rank is read at the same index.
        let found = found.unwrap_or_else(|| {
            let of = |operand: usize| match self.sizes(operand).len() {
                0 if !index.is_empty() => None,
                rank if rank == index.len() => Some((operand, index.clone())),
                rank => Some((operand, vec![Vec::new(); rank])),
            };
            operands.into_iter().filter_map(of).collect()
        });
        for (operand, index) in found {
            self.follow(operand, index, depth + 1);
        }
    }

    fn transpose(&self, instruction: usize, operands: &[usize], index: &Index) -> Option<Reads> {
        let &[operand] = operands else { return None };
        let mut read = vec![Vec::new(); index.len()];
        let order = self.instructions[instruction].dimensions(index.len());
        for (terms, dimension) in index.iter().zip(order) {
            read.get_mut(dimension)?.clone_from(terms);
        }
        Some(vec![(operand, read)])
    }

    fn broadcast(&self, instruction: usize, operands: &[usize], index: &Index) -> Option<Reads> {
        let &[operand] = operands else { return None };
        let rank = self.sizes(operand).len();
        let dimensions = self.instructions[instruction].dimensions(rank).into_iter();
        let read = dimensions.map(|dimension| index.get(dimension).cloned());
        Some(vec![(operand, read.collect::<Option<_>>()?)])
    }

    /// Takes the dimensions of both shapes in the smallest groups with equal numbers of elements. In a group, dimensions
    /// above 1 follow each other in order if there are as many on both sides; otherwise the last one has all loops.
    fn reshape(&self, operands: &[usize], sizes: &[i64], index: &Index) -> Option<Reads> {
        let &[operand] = operands else { return None };
        let from = self.sizes(operand);
        let mut read = vec![Vec::new(); from.len()];
        let mut next = [0, 0];
        while next[0] < from.len() && next[1] < sizes.len() {
            let [mut end, mut result_end] = next.map(|first| first + 1);
            let mut elements = from[next[0]];
            let mut result_elements = sizes[next[1]];
            while elements != result_elements {
                if elements < result_elements && end < from.len() {
                    elements = elements.saturating_mul(from[end]);
                    end += 1;
                } else if elements > result_elements && result_end < sizes.len() {
                    result_elements = result_elements.saturating_mul(sizes[result_end]);
                    result_end += 1;
                } else {
                    break;
                }
            }
            let mut own: Vec<usize> = (next[0]..end).filter(|&place| from[place] > 1).collect();
            if own.is_empty() {
                own.push(next[0]);
            }
            let group = next[1]..result_end;
            let others: Vec<usize> = group.clone().filter(|&place| sizes[place] > 1).collect();
            if own.len() == others.len() {
                for (&own, &other) in own.iter().zip(&others) {
                    read[own].clone_from(&index[other]);
                }
            } else {
                read[own[own.len() - 1]] = index[group].concat();
            }
            next = [end, result_end];
        }
        Some(vec![(operand, read)])
    }

    /// Returns the operands that are no initial values.
    fn arrays(&self, operands: &[usize]) -> Vec<usize> {
        let is_array = |operand: &usize| !self.sizes(*operand).is_empty();
        operands.iter().copied().filter(is_array).collect()
    }

    fn reduce(&mut self, instruction: usize, operands: &[usize], index: &Index) -> Option<Reads> {
        let mut reads = Reads::new();
        for operand in self.arrays(operands) {
            let sizes = self.sizes(operand);
            let expected = sizes.len().saturating_sub(index.len());
            let dimensions = self.instructions[instruction].dimensions(expected);
            let extents = of_dimensions(&sizes, &dimensions)?;
            let loops = self.reduction(&extents)?;
            let mut kept = index.iter().cloned();
            let read = (0..sizes.len()).map(|dimension| {
                let reduced = dimensions.iter().position(|one| *one == dimension);
                match reduced {
                    Some(reduced) => term(loops[reduced], 1),
                    None => kept.next().unwrap_or_default(),
                }
            });
            reads.push((operand, read.collect()));
        }
        Some(reads)
    }

    fn reduce_window(
        &mut self,
        instruction: usize,
        operands: &[usize],
        index: &Index,
    ) -> Option<Reads> {
        let window = self.instructions[instruction].window();
        let sizes = window.iter().map(|part| part.size);
        let loops = self.reduction(&sizes.filter(|size| *size > 1).collect::<Vec<_>>())?;
        let mut loops = loops.into_iter();
        let mut read = Index::new();
        for (terms, part) in index.iter().zip(&window) {
            let mut terms = moved(terms, part.stride);
            if part.size > 1 {
                terms.extend(term(loops.next()?, part.dilation));
            }
            read.push(terms);
        }
        let arrays = self.arrays(operands).into_iter();
        Some(arrays.map(|operand| (operand, read.clone())).collect())
    }

    fn dot(
        &mut self,
        instruction: usize,
        operands: &[usize],
        sizes: &[i64],
        index: &Index,
    ) -> Option<Reads> {
        let (&left, &right) = (operands.first()?, operands.last()?);
        let mut tensors = [left, right];
        let mut shapes = tensors.map(|side| self.sizes(side));
        let listed = self.instructions[instruction].lists.dimensions;
        let dimensions = DotDimensions::parse(listed);
        let dimensions = dimensions.or_else(|| guess_dot(&shapes[0], &shapes[1], sizes));
        // Without lists, the operands may be in the other order.
        let dimensions = dimensions.or_else(|| {
            tensors.reverse();
            shapes.reverse();
            guess_dot(&shapes[0], &shapes[1], sizes)
        })?;
        let DotDimensions { contracted, batch } = dimensions;
        let loops = self.reduction(&of_dimensions(&shapes[0], &contracted[0])?)?;
        let mut free = index.iter().skip(batch[0].len());
        let mut reads = Reads::new();
        for side in [0, 1] {
            let mut read = vec![None; shapes[side].len()];
            for (&dimension, &of) in contracted[side].iter().zip(&loops) {
                *read.get_mut(dimension)? = Some(term(of, 1));
            }
            for (&dimension, terms) in batch[side].iter().zip(index) {
                *read.get_mut(dimension)? = Some(terms.clone());
            }
            let read = read.into_iter();
            let read = read.map(|terms| terms.or_else(|| free.next().cloned()).unwrap_or_default());
            reads.push((tensors[side], read.collect()));
        }
        Some(reads)
    }

    fn convolution(
        &mut self,
        instruction: usize,
        operands: &[usize],
        sizes: &[i64],
        index: &Index,
    ) -> Option<Reads> {
        let convolution = self.instructions[instruction];
        let of = convolution.convolution(sizes.len().saturating_sub(2));
        let window = convolution.window();
        let (&input, &kernel) = (operands.first()?, operands.last()?);
        let mut tensors = [input, kernel];
        let extents_of = |kernel| of_dimensions(&self.sizes(kernel), &of.kernel_spatial);
        // Without lists, the operands may be in the other order.
        let listed = convolution.lists.dimensions;
        let windows: Vec<i64> = window.iter().map(|part| part.size).collect();
        if listed.is_empty()
            && extents_of(kernel).as_ref() != Some(&windows)
            && extents_of(input).as_ref() == Some(&windows)
        {
            tensors.reverse();
        }
        let output_spatial: Vec<usize> = if listed.is_empty() {
            let mut others: Vec<usize> = (0..sizes.len()).collect();
            others.retain(|place| ![of.output_batch, of.output_feature].contains(place));
            others
        } else {
            listed.iter().map(|&place| place as usize).collect()
        };
        let mut extents = extents_of(tensors[1])?;
        let spatial = extents.len();
        let [input_rank, kernel_rank] = tensors.map(|side| self.sizes(side).len());
        let channels = *self.sizes(tensors[1]).get(of.kernel_input)?;
        // Compilers reduce the dimensions of a window and the channels in the order of the input.
        let has_channels = channels > 1 || convolution.groups() == 1;
        let are_last = of
            .input_spatial
            .iter()
            .all(|place| of.input_feature > *place);
        if has_channels {
            extents.insert(if are_last { spatial } else { 0 }, channels);
        }
        let mut loops = self.reduction(&extents)?;
        let channel = has_channels.then(|| loops.remove(if are_last { spatial } else { 0 }));
        let channel = channel.map_or_else(Vec::new, |of| term(of, 1));
        let feature = index.get(of.output_feature)?;
        let mut input = vec![Vec::new(); input_rank];
        let mut kernel = vec![Vec::new(); kernel_rank];
        let batch = index.get(of.output_batch)?;
        input.get_mut(of.input_batch)?.clone_from(batch);
        let mut terms = channel.clone();
        if convolution.groups() > 1 {
            terms.extend_from_slice(feature);
        }
        *input.get_mut(of.input_feature)? = terms;
        kernel.get_mut(of.kernel_output)?.clone_from(feature);
        *kernel.get_mut(of.kernel_input)? = channel;
        for (place, own) in loops.into_iter().enumerate() {
            let part = window.get(place);
            let (stride, dilation) = part.map_or((1, 1), |part| (part.stride, part.dilation));
            let mut terms = moved(index.get(*output_spatial.get(place)?)?, stride);
            terms.extend(term(own, dilation));
            *input.get_mut(*of.input_spatial.get(place)?)? = terms;
            *kernel.get_mut(of.kernel_spatial[place])? = term(own, 1);
        }
        Some(vec![(tensors[0], input), (tensors[1], kernel)])
    }
}

/// Operands and the index by which each of them is read.
type Reads = Vec<(usize, Index)>;

fn term(of: usize, step: i64) -> Vec<Term> {
    vec![Term { of, step }]
}

/// The same loops, each of whose iterations moves `stride` times as far.
fn moved(terms: &[Term], stride: i64) -> Vec<Term> {
    let moved = terms.iter().map(|&Term { of, step }| Term {
        of,
        step: step.saturating_mul(stride),
    });
    moved.collect()
}

fn of_dimensions(sizes: &[i64], dimensions: &[usize]) -> Option<Vec<i64>> {
    let sizes = dimensions.iter().map(|&place| sizes.get(place).copied());
    sizes.collect()
}

#[expect(clippy::cast_precision_loss, reason = "columns are f32")]
fn to_f64(sizes: &[i64]) -> Vec<f64> {
    sizes.iter().map(|&size| size as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HloModule, Limits, Task};

    /// Shapes of the parameters, the root, and what [`followed`] returns.
    const KERNELS: [[&str; 3]; 19] = [
        ["f32[4,6]", "f32[24] reshape(p0)", "24 | ,0"],
        ["f32[24]", "f32[4,6] reshape(p0)", "4,6 | 0+1"],
        ["f32[2,3,4]", "f32[6,4] reshape(p0)", "6,4 | ,0,1"],
        ["f32[6,4]", "f32[2,3,4] reshape(p0)", "2,3,4 | 0+1,2"],
        ["f32[1,4,6]", "f32[4,1,6] reshape(p0)", "4,1,6 | ,0,2"],
        ["f32[4,1,6]", "f32[1,4,6] reshape(p0)", "1,4,6 | 1,,2"],
        ["f32[2,3,5]", "f32[3,2,5] reshape(p0)", "3,2,5 | 0,1,2"],
        ["f32[1,5]", "f32[5,1] reshape(p0)", "5,1 | ,0"],
        [
            "f32[2,3,4]",
            "f32[4,2,3] transpose(p0), dimensions={2,0,1}",
            "4,2,3 | 1,2,0",
        ],
        [
            "f32[3]",
            "f32[2,3,4] broadcast(p0), dimensions={1}",
            "2,3,4 | 1",
        ],
        [
            "f32[2,3,4]",
            "f32[2,4] reduce(p0, z), dimensions={1}, to_apply=add",
            "2,4,3 | 0,2,1",
        ],
        [
            "f32[8,21]",
            "f32[8,5] reduce-window(p0, z), window={size=1x4 stride=1x4 rhs_dilate=1x2}, to_apply=add",
            "8,5,4 | 0,4*1+2*2",
        ],
        [
            "f32[2,3,4]; f32[2,5,4]",
            "f32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, \
             rhs_contracting_dims={2}",
            "2,3,5,4 | 0,1,3; 0,2,3",
        ],
        [
            "f32[2,9,15,4]; f32[3,5,4,8]",
            "f32[2,7,2,8] convolution(p0, p1), window={size=3x5 stride=1x4 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f",
            "2,7,2,8,3,5,4 | 0,1+4,4*2+2*5,6; 4,5,6,3",
        ],
        [
            "f32[2,4,9]; f32[8,4,3]",
            "f32[2,8,7] convolution(p0, p1), window={size=3}, dim_labels=bf0_oi0->bf0",
            "2,8,7,4,3 | 0,3,2+4; 1,3,4",
        ],
        // In groups of two channels, and of one.
        [
            "f32[2,9,9,8]; f32[3,3,2,8]",
            "f32[2,7,7,8] convolution(p0, p1), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=4",
            "2,7,7,8,3,3,2 | 0,1+4,2+5,6+3; 4,5,6,3",
        ],
        [
            "f32[2,9,8]; f32[3,1,8]",
            "f32[2,7,8] convolution(p0, p1), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=8",
            "2,7,8,3 | 0,1+3,2; 3,,2",
        ],
        [
            "pred[]; f32[4]; f32[4]",
            "f32[4] select(p0, p1, p2)",
            "4 | 0; 0",
        ],
        [
            "f32[4]; f32[2]",
            "(f32[2], f32[4], f32[]) tuple(p1, p0, z)",
            "4 | 0; 0",
        ],
    ];

    /// The extents of the loops, and the index of each tensor that is read: per dimension its loops, with their steps above 1.
    fn followed(parameters: &str, root: &str) -> String {
        let parameters = parameters.split("; ").enumerate();
        let parameters =
            parameters.map(|(number, shape)| format!("p{number} = {shape} parameter({number})\n"));
        let parameters: String = parameters.collect();
        let text = format!(
            "HloModule m\n\nadd {{\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT s = f32[] add(a, b)\n}}\n\n\
             ENTRY e {{\n{parameters}z = f32[] constant(0)\nROOT r = {root}\n}}\n"
        );
        let module = HloModule::read_text(&text, &Limits::default()).unwrap();
        let graph = module.into_graph(Task::Tile, Vec::new()).unwrap();
        let loops = graph.loops().unwrap();
        let joined = |texts: Vec<String>, between| texts.join(between);
        let term = |term: &Term| match term.step {
            1 => term.of.to_string(),
            step => format!("{step}*{}", term.of),
        };
        let terms = |terms: &Vec<Term>| joined(terms.iter().map(term).collect(), "+");
        let reads = loops.accesses.iter().filter(|access| !access.is_output);
        let reads = reads.map(|access| joined(access.index.iter().map(terms).collect(), ","));
        let extents = loops.extents.iter().map(f64::to_string);
        format!(
            "{} | {}",
            joined(extents.collect(), ","),
            joined(reads.collect(), "; ")
        )
    }

    #[test]
    fn an_operand_is_read_by_the_loops_of_the_result() {
        for [parameters, root, expected] in KERNELS {
            assert_eq!(followed(parameters, root), expected, "{root}");
        }
    }
}
