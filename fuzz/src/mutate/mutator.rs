use fastrand::Rng;

/// Changes an input.
pub type Mutate = fn(&mut Vec<u8>, &mut Mutator);

/// The source of random choices, and what changes bytes of unknown structure.
#[derive(Debug)]
pub struct Mutator {
    /// Where all random choices come from.
    pub random: Rng,
    /// Changes some bytes.
    pub change_bytes: fn(&mut Vec<u8>, &mut Rng),
}

impl Mutator {
    pub(super) fn change(&mut self, bytes: &mut Vec<u8>) {
        (self.change_bytes)(bytes, &mut self.random);
    }
}

/// Changes an input without structure.
pub fn mutate_bytes(input: &mut Vec<u8>, mutator: &mut Mutator) {
    mutator.change(input);
}
