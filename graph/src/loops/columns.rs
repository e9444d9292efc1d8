use super::nest::{Access, LoopNest, Term};
use crate::features::LOOP_FEATURES;

/// Value of a column that does not apply.
const ABSENT: f64 = -9.0;

/// Value of `minor_loop` if the minor dimension follows a reduction.
const REDUCED: f64 = 10.0;

/// Bytes of a vector register and of a line of a cache.
const REGISTER: f64 = 64.0;

/// Bounds of a tile in each of its lists, and features of a list.
const BOUNDS: usize = 6;
const LIST: usize = 8;

/// Columns that do not apply if a kernel has fewer loops or inputs: the number of places, and the columns of each.
const OUTPUT_LOOPS: (usize, usize) = (4, 12);
const REDUCTION_LOOPS: (usize, usize) = (3, 5);
const INPUTS: (usize, usize) = (3, TENSOR);
const TENSOR: usize = 19;

/// The sizes into which a tile cuts the loops of a kernel.
struct Cut<'a> {
    nest: &'a LoopNest,
    /// Iterations of each loop in a tile of a workgroup, and in a vector of it; of a reduction, all of them and those of a step.
    tile: Vec<f64>,
    vector: Vec<f64>,
    /// The loops of the result, minor loop first.
    minors: Vec<usize>,
    /// The loops of the reduction with the most iterations, minor loop first.
    reduction: Vec<usize>,
    /// Logarithms of the number of tiles, of vectors of a tile and of steps of the reduction.
    tiles: f64,
    vectors: f64,
    reduction_steps: f64,
    /// Number of bounds of the reduction.
    bounds: usize,
}

/// A tensor, and how the loops that a tile cuts go through it.
struct Piece<'a> {
    access: &'a Access,
    /// Elements of a tile of a workgroup, and of a vector.
    tile: f64,
    vector: f64,
    /// Contiguous elements of both.
    tile_run: f64,
    vector_run: f64,
    /// Elements of the vector in the minor dimension.
    minor: f64,
    /// Distance that the loop moves that is vectorized; 0 if none is, or if it moves nothing.
    stride: f64,
    /// Vector loads of the piece of a vector.
    loads: f64,
}

impl LoopNest {
    /// Appends the columns of the tile with these 24 features. The logarithms are binary.
    pub fn write(&self, tile: &[f32], columns: &mut Vec<f32>) {
        let end = columns.len() + LOOP_FEATURES;
        let bounds = tile[..BOUNDS].iter().filter(|bound| **bound > 0.0).count();
        Cut::new(self, tile, bounds).write(&mut Writer(columns));
        debug_assert_eq!(columns.len(), end, "every group has its columns");
    }

    /// Returns the loops of the reduction with the most iterations that has as many loops as the tile has bounds, or more if none
    /// has; major loop first.
    fn main_reduction(&self, bounds: usize) -> &[usize] {
        let iterations = |loops: &&Vec<usize>| {
            let extents = loops.iter().map(|&of| self.extents[of]);
            if loops.is_empty() {
                0.0
            } else {
                extents.product::<f64>()
            }
        };
        let of_length = |fits: fn(&usize, &usize) -> bool| {
            let fitting = self
                .reductions
                .iter()
                .filter(move |loops| fits(&loops.len(), &bounds));
            // The first of equal ones.
            fitting
                .rev()
                .max_by(|one, other| iterations(one).total_cmp(&iterations(other)))
        };
        let main = of_length(usize::eq).or_else(|| of_length(usize::gt));
        main.map_or(&[], Vec::as_slice)
    }
}

/// Appends columns.
struct Writer<'a>(&'a mut Vec<f32>);

impl Writer<'_> {
    #[expect(clippy::cast_possible_truncation, reason = "models take f32")]
    fn push<const N: usize>(&mut self, values: [f64; N]) {
        self.0.extend(values.map(|value| value as f32));
    }

    fn push_all(&mut self, values: impl Iterator<Item = f64>) {
        values.for_each(|value| self.push([value]));
    }

    /// Fills the columns of places that a kernel does not have.
    fn pad(&mut self, (places, columns): (usize, usize), used: usize) {
        let missing = places.saturating_sub(used) * columns;
        self.push_all(std::iter::repeat_n(ABSENT, missing));
    }
}

impl<'a> Cut<'a> {
    fn new(nest: &'a LoopNest, features: &[f32], bounds: usize) -> Self {
        let mut tile = nest.extents.clone();
        let mut vector = nest.extents.clone();
        let minors: Vec<usize> = (0..nest.rank).rev().collect();
        let set = |size: &mut f64, bound: f32| {
            if bound > 0.0 {
                *size = bound.into();
            }
        };
        // The last bound of a result is that of its minor loop, whose features come first.
        for (place, &of) in minors.iter().enumerate().take(BOUNDS) {
            set(&mut tile[of], features[LIST + place]);
            set(&mut vector[of], features[2 * LIST + place]);
        }
        for loops in nest.reductions.iter().filter(|loops| loops.len() == bounds) {
            for (place, &of) in loops.iter().rev().enumerate().take(BOUNDS) {
                let extent = nest.extents[of];
                set(&mut vector[of], features[place]);
                vector[of] = vector[of].min(extent);
            }
        }
        let mut reduction = nest.main_reduction(bounds).to_vec();
        reduction.reverse();
        let mut cut = Self {
            nest,
            tile,
            vector,
            minors,
            reduction,
            tiles: 0.0,
            vectors: 0.0,
            reduction_steps: 0.0,
            bounds,
        };
        let extents = &nest.extents;
        cut.tiles = log2(product(&cut.minors, |of| {
            (extents[of] / cut.tile[of]).ceil()
        }));
        cut.vectors = log2(product(&cut.minors, |of| {
            (cut.tile[of] / cut.vector[of]).ceil()
        }));
        cut.reduction_steps = log2(product(&cut.reduction, |of| {
            (extents[of] / cut.vector[of]).ceil()
        }));
        cut
    }

    /// Logarithm of the number of steps of all loops.
    fn steps(&self) -> f64 {
        self.tiles + self.vectors + self.reduction_steps
    }

    fn write(&self, columns: &mut Writer<'_>) {
        let loops = self.minors.iter().take(OUTPUT_LOOPS.0);
        loops.for_each(|&of| self.write_output_loop(of, columns));
        columns.pad(OUTPUT_LOOPS, self.minors.len());
        let loops = self.reduction.iter().take(REDUCTION_LOOPS.0);
        loops.for_each(|&of| self.write_reduction_loop(of, columns));
        columns.pad(REDUCTION_LOOPS, self.reduction.len());
        self.write_row(columns);
        let accesses = self.nest.accesses.iter();
        let pieces: Vec<Piece<'_>> = accesses.map(|access| self.piece(access)).collect();
        self.write_tensors(&pieces, columns);
        match pieces.first() {
            Some(output) => self.write_tensor(output, columns),
            None => columns.pad((1, TENSOR), 0),
        }
        let mut inputs: Vec<_> = pieces
            .iter()
            .filter(|piece| !piece.access.is_output)
            .collect();
        let outputs = pieces.len() - inputs.len();
        // The largest first, and equal ones in the order in which they are reached.
        inputs.sort_by(|one, other| other.access.bytes.total_cmp(&one.access.bytes));
        let largest = inputs.iter().take(INPUTS.0);
        largest.for_each(|input| self.write_tensor(input, columns));
        columns.pad(INPUTS, inputs.len());
        let counts = [
            inputs.len(),
            outputs,
            self.reduction.len(),
            self.minors.len(),
            self.bounds,
        ];
        columns.push(counts.map(to_f64));
        columns.push_all(self.nest.opcodes.iter().copied().map(to_f64));
        columns.push([to_f64(self.nest.nodes), self.element()]);
    }

    /// Bytes of an element of the result.
    fn element(&self) -> f64 {
        self.nest
            .accesses
            .first()
            .map_or(4.0, |output| output.element)
    }

    fn write_output_loop(&self, of: usize, columns: &mut Writer<'_>) {
        let extent = self.nest.extents[of];
        let tile = self.tile[of];
        let vector = self.vector[of];
        let tiles = (extent / tile).ceil();
        let vectors = (tile / vector).ceil();
        columns.push([
            log2(extent),
            log2(tile),
            log2(vector),
            log2(tiles),
            log2(vectors),
            log2(tiles * tile / extent),
            log2(vectors * vector / tile),
            extent % tile,
            tile % vector,
            extent % tile % vector,
            vector,
            vector / extent,
        ]);
    }

    fn write_reduction_loop(&self, of: usize, columns: &mut Writer<'_>) {
        let extent = self.nest.extents[of];
        let step = self.vector[of];
        let steps = (extent / step).ceil();
        columns.push([
            log2(extent),
            log2(step),
            log2(steps),
            extent % step,
            log2(steps * step / extent),
        ]);
    }

    /// Elements of a vector of the result, of a step of the reduction, and of the vector in the minor loop.
    fn vector_sizes(&self) -> [f64; 3] {
        let size = |of: usize| self.vector[of];
        let minor = self.minors.first().map_or(1.0, |&minor| size(minor));
        [
            product(&self.minors, size),
            product(&self.reduction, size),
            minor,
        ]
    }

    /// Accumulator registers of a vector of the result.
    fn accumulators(&self) -> f64 {
        let [vector, _, minor] = self.vector_sizes();
        let register = REGISTER / self.element();
        (minor / register).ceil() * vector / minor
    }

    fn write_row(&self, columns: &mut Writer<'_>) {
        let [vector, step, minor] = self.vector_sizes();
        let both = log2(vector) + log2(step);
        let extent = |of: usize| self.nest.extents[of];
        let iterations = product(&self.minors, extent) * product(&self.reduction, extent);
        columns.push([
            self.tiles,
            self.vectors,
            self.reduction_steps,
            self.steps(),
            self.tiles + self.vectors,
            log2(vector),
            log2(step),
            both,
            log2(product(&self.minors, |of| self.tile[of])),
            self.steps() + both - log2(iterations),
        ]);
        let register = REGISTER / self.element();
        let scalar = self.minors.iter();
        let scalar = scalar
            .filter(|&&of| self.vector[of] == 1.0 && self.tile[of] > 1.0)
            .count();
        let vectorized = self.minors.iter().position(|&of| self.vector[of] > 1.0);
        columns.push([
            minor / register,
            minor % register,
            log2((minor / register).ceil() * register / minor),
            log2(self.accumulators()),
            log2(vector / minor),
            f64::from(log2(minor).round_ties_even().exp2() == minor),
            to_f64(scalar),
            vectorized.map_or(-1.0, to_f64),
        ]);
    }

    fn piece(&self, access: &'a Access) -> Piece<'a> {
        let [tile, tile_run, _] = extent_of(access, self.nest.rank, &self.nest.extents, &self.tile);
        let [vector, vector_run, minor] =
            extent_of(access, self.nest.rank, &self.nest.extents, &self.vector);
        let vectorized = self.minors.iter().find(|&&of| self.vector[of] > 1.0);
        Piece {
            access,
            tile,
            vector,
            tile_run,
            vector_run,
            minor,
            stride: vectorized.and_then(|&of| access.stride(of)).unwrap_or(0.0),
            loads: vector / minor * (minor * access.element / REGISTER).ceil(),
        }
    }

    fn write_tensors(&self, pieces: &[Piece<'_>], columns: &mut Writer<'_>) {
        let [_, step, minor] = self.vector_sizes();
        let registers = (minor / (REGISTER / self.element())).ceil();
        let mut sums = [0.0; 5];
        for piece in pieces {
            let element = piece.access.element;
            // One load of a register, of a value for all of it, or of each of its elements.
            let instructions = match piece.stride {
                1.0 => registers,
                0.0 => 1.0,
                _ => minor,
            };
            let bytes = piece.tile * element;
            // Memory is read in whole lines of a cache.
            let lines = REGISTER * piece.tile / piece.tile_run.max(1.0);
            let values = [
                bytes,
                piece.vector * element,
                piece.loads,
                instructions * piece.vector / minor.min(piece.vector).max(1.0),
                self.tiles.exp2() * bytes.max(lines),
            ];
            sums.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
        let [tile, vector, loads, instructions, traffic] = sums.map(log2);
        let steps = self.steps();
        let multiply_adds = log2(self.accumulators()) + log2(step);
        let cycles = log2(
            (steps + instructions).exp2()
                + (multiply_adds + steps).exp2()
                + 8.0 * (self.tiles + self.vectors).exp2(),
        );
        columns.push([
            tile,
            vector,
            loads,
            instructions,
            traffic,
            steps + instructions,
            steps + loads,
            multiply_adds,
            multiply_adds + steps,
            instructions - multiply_adds,
            cycles,
            log2(cycles.exp2() + traffic.exp2() / 16.0),
        ]);
    }

    fn write_tensor(&self, piece: &Piece<'_>, columns: &mut Writer<'_>) {
        let access = piece.access;
        let element = access.element;
        let extents = &self.nest.extents;
        let longer = self.minors.iter().find(|&&of| extents[of] > 1.0);
        let stride = |of: Option<&usize>| of.and_then(|&of| access.stride(of)).unwrap_or(0.0);
        let is_still = |of: &&usize| access.stride(**of).is_none();
        let still = || self.minors.iter().filter(is_still);
        let still_reduced = self.reduction.iter().filter(is_still);
        let size = |of: usize| self.vector[of];
        let last = access.sizes.last().copied();
        let vector_bytes = log2(piece.vector * element);
        let tile_bytes = log2(piece.tile * element);
        let bytes = log2(access.bytes);
        columns.push([
            bytes,
            element,
            tile_bytes,
            vector_bytes,
            log2(piece.tile_run * element),
            log2(piece.vector_run * element),
            piece.minor,
            log2(piece.minor / last.unwrap_or(1.0)),
            stride_column(piece.stride),
            stride_column(stride(longer)),
            stride_column(stride(self.reduction.first())),
            self.minor_loop(access.index.last().and_then(|terms| terms.last())),
            log2(product(still(), size) * product(still_reduced, size)),
            log2(product(still(), |of| (extents[of] / self.tile[of]).ceil())),
            log2(piece.loads),
            // The second dimension from the end moves by the size of the last one.
            if access.sizes.len() > 1 {
                last.unwrap_or(1.0) * element % REGISTER
            } else {
                0.0
            },
            self.steps() + vector_bytes - bytes,
            self.tiles + tile_bytes - bytes,
            self.steps() + log2(piece.loads),
        ]);
    }

    /// Which loop the minor dimension of a tensor follows: its place among those of the result, minor loop first.
    fn minor_loop(&self, term: Option<&Term>) -> f64 {
        let Some(&Term { of, .. }) = term else {
            return ABSENT;
        };
        if self.reduction.contains(&of) {
            return REDUCED;
        }
        let place = self.minors.iter().position(|&minor| minor == of);
        place.map_or(ABSENT, to_f64)
    }
}

/// Returns the elements of a tensor that the loops reach in `sizes` iterations of each, how many of them are contiguous, and how
/// many are in the minor dimension.
fn extent_of(access: &Access, rank: usize, extents: &[f64], sizes: &[f64]) -> [f64; 3] {
    let mut elements = 1.0;
    let mut run = 1.0;
    let mut minor = 1.0;
    let mut is_whole = true;
    let dimensions = access.index.iter().zip(&access.sizes).rev();
    for (place, (terms, &size)) in dimensions.enumerate() {
        let length = |term: &Term| sizes[term.of].min(extents[term.of]);
        let is_merged =
            terms.len() > 1 && terms.iter().all(|term| term.step == 1 && term.of < rank);
        let reached = if is_merged {
            terms.iter().map(length).product::<f64>()
        } else {
            #[expect(clippy::cast_precision_loss, reason = "columns are f32")]
            let moved = terms
                .iter()
                .map(|term| (length(term) - 1.0) * term.step as f64);
            1.0 + moved.sum::<f64>()
        };
        let reached = reached.min(size);
        elements *= reached;
        if is_whole {
            run *= reached;
        }
        is_whole &= reached >= size;
        if place == 0 {
            minor = reached;
        }
    }
    [elements, run, minor]
}

fn stride_column(stride: f64) -> f64 {
    if stride > 0.0 { log2(stride) } else { -1.0 }
}

fn product<'a>(loops: impl IntoIterator<Item = &'a usize>, value: impl Fn(usize) -> f64) -> f64 {
    loops.into_iter().map(|&of| value(of)).product()
}

fn log2(value: f64) -> f64 {
    value.max(1e-9).log2()
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn to_f64(count: usize) -> f64 {
    count as f64
}
