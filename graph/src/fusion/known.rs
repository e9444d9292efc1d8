use std::{
    collections::{HashMap, VecDeque},
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use foldhash::fast::RandomState;

use super::{
    body::{Body, NodeClasses},
    kernel::{Kernel, KernelLimits, KernelTooLarge},
};
use crate::{Digest, FusionProgram, Graph, Segment, pace};

/// A kernel of a program, and what identifies it in every program.
#[derive(Debug)]
pub(crate) struct KnownKernel {
    /// One of the kernels with this digest.
    kernel: Kernel,
    digest: Digest,
}

/// The kernels of a program that were formed before. Configurations of a search share nearly all of their kernels, many
/// roots of one configuration have equal ones, and forming one takes many times as long as finding it here.
#[derive(Default)]
pub(crate) struct KnownKernels {
    alike: OnceLock<NodeClasses>,
    table: Arc<Mutex<Table>>,
}

/// Bounds the memory of what several programs know of their kernels. It grows while calls use a program, so a cache, which
/// weighs an entry once, cannot count it.
#[derive(Debug)]
pub struct KernelMemory {
    limit: usize,
    bytes: AtomicUsize,
    /// Those that were cleared last are at the end.
    tables: Mutex<VecDeque<Weak<Mutex<Table>>>>,
}

#[derive(Default)]
struct Table {
    /// By members.
    bodies: HashMap<Box<[u32]>, Arc<Body>, RandomState>,
    /// By signature.
    kernels: HashMap<Box<[u32]>, Outcome, RandomState>,
    bytes: usize,
    /// The memory that the bytes count in, if programs share one.
    memory: Option<Arc<KernelMemory>>,
    /// Number of the next body. It goes on when the table is cleared, so that no two bodies have one number.
    next_body: u32,
}

type Outcome = Result<Arc<KnownKernel>, KernelTooLarge>;

/// A configuration whose kernels are looked up.
struct Lookup<'a> {
    known: &'a KnownKernels,
    program: &'a FusionProgram,
    graph: &'a Graph,
    fused: &'a [u8],
    alike: &'a NodeClasses,
    limits: KernelLimits,
    /// What is fused into roots, by their fused operands.
    bodies: HashMap<Vec<u32>, Arc<Body>, RandomState>,
    bytes: usize,
}

/// Limit on the bytes of the kernels that are kept of a program. All are dropped when it is reached.
const MAX_KNOWN_BYTES: usize = 16 << 20;

impl KernelMemory {
    /// Allows at most this many bytes. What programs know is dropped in turn when they are reached.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            bytes: AtomicUsize::new(0),
            tables: Mutex::default(),
        })
    }

    /// Returns the number of bytes that the programs take, and the limit.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        (self.bytes.load(Ordering::Relaxed), self.limit)
    }

    fn make_room(&self) {
        let is_full = || self.bytes.load(Ordering::Relaxed) > self.limit;
        if !is_full() {
            return;
        }
        let mut tables = lock(&self.tables);
        for _ in 0..tables.len() {
            if !is_full() {
                break;
            }
            tables.rotate_left(1);
            if let Some(table) = tables.back().and_then(Weak::upgrade) {
                lock(&table).clear();
            }
        }
    }
}

impl KnownKernel {
    /// The digest of the kernel's segment. Equal kernels of any programs have the same.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Number of bytes that this holds.
    pub(crate) fn bytes(&self) -> usize {
        let Kernel {
            called,
            inputs,
            body,
            ..
        } = &self.kernel;
        size_of::<Self>() + size_of_val(&**called) + size_of_val(&**inputs) + size_of_val(&**body)
    }

    /// Returns the kernel as a model sees it.
    pub(crate) fn segment(&self, graph: &Graph) -> Segment {
        self.kernel.segment(graph)
    }

    /// Number of nodes of the kernel as a module of its own.
    pub(crate) fn len(&self) -> usize {
        self.kernel.len()
    }
}

impl KnownKernels {
    /// Returns the kernels that a configuration of a program runs, by root. `graph` is the graph of the program.
    pub(crate) fn of(
        &self,
        program: &FusionProgram,
        graph: &Graph,
        fused: &[u8],
    ) -> Result<Vec<Arc<KnownKernel>>, KernelTooLarge> {
        let alike = self.alike(program, graph);
        let mut lookup = Lookup {
            known: self,
            program,
            graph,
            fused,
            alike,
            limits: KernelLimits::default(),
            bodies: HashMap::default(),
            bytes: 0,
        };
        let mut kernels = Vec::new();
        program.for_each_root(|root, needed| {
            kernels.push(lookup.kernel(root, needed)?);
            Ok(())
        })?;
        kernels.reverse();
        Ok(kernels)
    }

    /// Counts what is known, and what will be, in a memory that programs share.
    pub(crate) fn count_in(&self, memory: &Arc<KernelMemory>) {
        self.table().count_in(memory);
        let mut tables = lock(&memory.tables);
        tables.retain(|table| table.strong_count() > 0);
        tables.push_back(Arc::downgrade(&self.table));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table().kernels.len()
    }

    fn alike(&self, program: &FusionProgram, graph: &Graph) -> &NodeClasses {
        if let Some(alike) = self.alike.get() {
            return alike;
        }
        // Comparing pauses, so nobody may wait for it: whoever is first keeps what was found.
        let alike = NodeClasses::new(program, graph);
        self.alike.get_or_init(|| alike)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

/// Nothing that holds a lock leaves what it protects half changed, or pauses.
fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lookup<'_> {
    /// Returns the kernel of a root, and marks what it reads.
    fn kernel(&mut self, root: u32, needed: &mut [bool]) -> Outcome {
        let body = self.body(root, needed);
        let limit = usize::from(self.limits.nodes);
        if body.members.len() >= limit {
            return Err(KernelTooLarge::Nodes { root, limit });
        }
        let program = self.program;
        for &operand in program.operands(root) {
            if !body.has(operand) && !program.node(operand).is_scalar_constant {
                needed[program.position(operand)] = true;
            }
        }
        let signature = body.signature(root, self.program, self.graph, self.alike);
        // A limit that the kernel exceeds is remembered as well, with the root that exceeded it
        // first.
        if let Some(outcome) = self.known.table().kernels.get(&*signature) {
            return outcome.clone().map_err(|reason| reason.of_root(root));
        }
        let kernel = program.kernel(&body.members, root, &self.limits);
        let outcome = kernel.map(|kernel| {
            let digest = kernel.segment(self.graph).digest;
            Arc::new(KnownKernel { kernel, digest })
        });
        let bytes = outcome.as_ref().map_or(0, |known| known.bytes());
        let mut table = self.known.table();
        table.hold(size_of_val(&*signature) + size_of::<Outcome>() + bytes);
        table.kernels.insert(signature.into(), outcome.clone());
        let memory = table.memory.clone();
        drop(table);
        if let Some(memory) = memory {
            memory.make_room();
        }
        pace::pause();
        outcome
    }

    /// Returns what is fused into a root, and marks what that reads.
    fn body(&mut self, root: u32, needed: &mut [bool]) -> Arc<Body> {
        let fused_operands = self.program.fused_operands(root, self.fused);
        if let Some(body) = self.bodies.get(&fused_operands) {
            // The root that was first to use it has marked its inputs.
            return Arc::clone(body);
        }
        let most = usize::from(self.limits.nodes);
        let members = Body::members(self.program, &fused_operands, self.fused, most);
        let body = self.known.table().body(self.program, members);
        self.program.mark(&body.inputs, needed);
        // Further roots have the same fused operands.
        self.bytes += size_of_val(&*fused_operands) + body.bytes();
        if self.bytes > MAX_KNOWN_BYTES {
            self.bodies.clear();
            self.bytes = body.bytes();
        }
        self.bodies.insert(fused_operands, Arc::clone(&body));
        body
    }
}

impl Table {
    /// Returns the body of these members.
    fn body(&mut self, program: &FusionProgram, members: Box<[u32]>) -> Arc<Body> {
        if let Some(body) = self.bodies.get(&members) {
            return Arc::clone(body);
        }
        // Signatures name bodies by their numbers, so equal members must get one number.
        let body = Arc::new(Body::new(program, members.clone(), self.next_body));
        self.next_body += 1;
        self.hold(size_of_val(&*members) + body.bytes());
        self.bodies.insert(members, Arc::clone(&body));
        body
    }

    /// Counts bytes, and drops everything if there are too many.
    fn hold(&mut self, bytes: usize) {
        if self.bytes + bytes > MAX_KNOWN_BYTES {
            self.clear();
        }
        self.bytes += bytes;
        if let Some(memory) = &self.memory {
            memory.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn clear(&mut self) {
        self.bodies = HashMap::default();
        self.kernels = HashMap::default();
        let bytes = mem::take(&mut self.bytes);
        if let Some(memory) = &self.memory {
            memory.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn count_in(&mut self, memory: &Arc<KernelMemory>) {
        memory.bytes.fetch_add(self.bytes, Ordering::Relaxed);
        if let Some(before) = self.memory.replace(Arc::clone(memory)) {
            before.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for KnownKernels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KnownKernels")
            .finish_non_exhaustive()
    }
}

/// What is known changes nothing about a program.
impl PartialEq for KnownKernels {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fmt::Write as _, rc::Rc};

    use super::*;
    use crate::{HloModule, Limits, SegmentedGraph, Task};

    /// A chain of `length` nodes, and users of its end, some of which also read the parameter or each other.
    fn program(length: usize, users: usize) -> SegmentedGraph {
        let mut text = "HloModule m\n\nENTRY e {\n  c0 = f32[8] parameter(0)\n".to_owned();
        for node in 1..=length {
            writeln!(text, "  c{node} = f32[8] negate(c{})", node - 1).unwrap();
        }
        for user in 0..users {
            let other = match user % 3 {
                1 => format!("c{length}"),
                2 => format!("u{}", user - 1),
                _ => "c0".to_owned(),
            };
            writeln!(text, "  u{user} = f32[8] add(c{length}, {other})").unwrap();
        }
        let all: Vec<String> = (0..users).map(|user| format!("u{user}")).collect();
        let shapes = vec!["f32[8]"; users].join(", ");
        writeln!(text, "  ROOT t = ({shapes}) tuple({})\n}}", all.join(", ")).unwrap();
        let module = HloModule::read_text(&text, &Limits::default()).unwrap();
        SegmentedGraph::new(&module.into_graph(Task::Fusion, Vec::new()).unwrap())
    }

    /// Returns bits of the slots of a program, none of which are set.
    fn no_bits(graph: &SegmentedGraph) -> Vec<u8> {
        vec![0; graph.slots().div_ceil(8)]
    }

    #[test]
    fn kernels_that_are_found_are_those_that_are_formed() {
        let graph = program(9, 12);
        let program = graph.whole.program().unwrap();
        let mut state = 7;
        for _ in 0..200 {
            state =
                u64::wrapping_mul(state ^ (state >> 29), 6_364_136_223_846_793_005).wrapping_add(1);
            let mut fused: Vec<u8> = state.to_le_bytes()[..graph.slots().div_ceil(8)].to_vec();
            let unused = 8 * fused.len() - graph.slots();
            *fused.last_mut().unwrap() &= 0xff >> unused;
            let formed = program.kernels(&fused, &KernelLimits::default());
            let formed = formed.map(|all| {
                let digests = all.iter().map(|each| each.segment(&graph.whole).digest);
                digests.collect::<Vec<_>>()
            });
            let found = graph.kernels(&fused);
            let found = found.map(|all| all.iter().map(|each| each.digest()).collect::<Vec<_>>());
            assert_eq!(found, formed);
        }
    }

    #[test]
    fn programs_that_share_a_memory_stay_within_it_and_give_back_what_they_took() {
        const LIMIT: usize = 20_000;
        let memory = KernelMemory::new(LIMIT);
        let programs: Vec<_> = (9..19).map(|length| program(length, 12)).collect();
        for program in &programs {
            program.count_kernels_in(&memory);
        }
        for program in programs.iter().cycle().take(50) {
            let mut fused = no_bits(program);
            fused[..program.slots() / 8].fill(0x55);
            program.kernels(&fused).unwrap();
            assert!(program.known_kernels() > 0);
            let (bytes, limit) = memory.bytes();
            assert!(0 < bytes && bytes <= limit, "{bytes}");
        }
        drop(programs);
        assert_eq!(memory.bytes(), (0, LIMIT));
        let last = program(9, 12);
        last.count_kernels_in(&memory);
        assert_eq!(lock(&memory.tables).len(), 1);
    }

    #[test]
    fn a_chain_that_many_nodes_use_is_formed_once() {
        let graph = program(300, 3_000);
        // The chain stands before its users.
        let mut chain = no_bits(&graph);
        (0..300).for_each(|slot| chain[slot / 8] |= 1 << (slot % 8));
        let pauses = Rc::new(Cell::new(0));
        let count = Rc::clone(&pauses);
        let kernels =
            pace::paced(move || count.set(count.get() + 1), || graph.kernels(&chain)).unwrap();
        assert_eq!(kernels.len(), 3_000);
        let table = graph.known_kernels();
        assert!(table <= 8, "{table} kernels");
        assert!(pauses.get() >= 3_000 / 64, "{}", pauses.get());
    }
}
