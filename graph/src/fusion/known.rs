use std::{
    fmt,
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
};

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

use super::{
    form::Walk,
    kernel::{Kernel, KernelLimits, KernelTooLarge},
    program::FusionProgram,
};
use crate::{Digest, Graph, Segment};

/// A kernel of a program, and what identifies it in every program.
#[derive(Debug)]
pub(crate) struct KnownKernel {
    kernel: Kernel,
    digest: Digest,
}

/// The kernels of a program that were formed before. Configurations of a search share nearly all of their kernels, and
/// forming one takes many times as long as finding it here.
#[derive(Default)]
pub(crate) struct KnownKernels(Mutex<Table>);

#[derive(Default)]
struct Table {
    formed: HashTable<Formed>,
    hasher: RandomState,
    bytes: usize,
}

struct Formed {
    /// The members, ascending, which identify a kernel of the program.
    members: Box<[u32]>,
    outcome: Result<Arc<KnownKernel>, KernelTooLarge>,
}

/// Limit on the bytes of the kernels that are kept. All are dropped when it is reached.
pub(crate) const MAX_KNOWN_BYTES: usize = 16 << 20;

impl KnownKernel {
    /// The digest of the kernel's segment. Equal kernels of any programs have the same.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Number of bytes that this holds.
    pub(crate) fn bytes(&self) -> usize {
        let Kernel { called, inputs, body, .. } = &self.kernel;
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
        walk: &mut Walk,
    ) -> Result<Vec<Arc<KnownKernel>>, KernelTooLarge> {
        let limits = KernelLimits::default();
        // Nothing that holds the lock leaves the table half changed.
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let form = |members: &[u32]| {
            table.find(members, || {
                let kernel = program.kernel(members, &limits)?;
                let digest = kernel.segment(graph).digest;
                Ok(Arc::new(KnownKernel { kernel, digest }))
            })
        };
        program.walk(fused, walk, &limits, form, |known| &known.kernel)
    }
}

impl Table {
    /// Returns the kernel of these members, which `form` forms if it is new.
    fn find(
        &mut self,
        members: &[u32],
        form: impl FnOnce() -> Result<Arc<KnownKernel>, KernelTooLarge>,
    ) -> Result<Arc<KnownKernel>, KernelTooLarge> {
        if self.bytes > MAX_KNOWN_BYTES {
            *self = Self::default();
        }
        let Self { formed, hasher, bytes } = self;
        let hash = hasher.hash_one(members);
        let same = |known: &Formed| *known.members == *members;
        match formed.entry(hash, same, |known| hasher.hash_one(&*known.members)) {
            Entry::Occupied(known) => known.get().outcome.clone(),
            Entry::Vacant(vacant) => {
                let outcome = form();
                *bytes += size_of::<Formed>() + size_of_val(members);
                *bytes += outcome.as_ref().map_or(0, |known| known.bytes());
                vacant.insert(Formed { members: members.into(), outcome: outcome.clone() });
                outcome
            }
        }
    }
}

impl fmt::Debug for KnownKernels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KnownKernels").finish_non_exhaustive()
    }
}

/// What is known changes nothing about a program.
impl PartialEq for KnownKernels {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
