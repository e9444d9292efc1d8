use fastrand::Rng;

/// Values at which counts, signs and widths end.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    i32::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
];

/// Changes some bytes at random, where libFuzzer is not there to do it.
pub fn change_bytes(bytes: &mut Vec<u8>, random: &mut Rng) {
    if bytes.is_empty() {
        bytes.push(random.u8(..));
        return;
    }
    let at = random.usize(..bytes.len());
    let end = (at + 1 + random.usize(..64)).min(bytes.len());
    match random.u8(..6) {
        0 => bytes[at] ^= 1 << random.u8(..8),
        1 => bytes[at] = random.u8(..),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copied = bytes[at..end].to_vec();
            let to = random.usize(..bytes.len());
            bytes.splice(to..to, copied);
        }
        4 => bytes.truncate(at),
        _ => {
            let edge = EDGES[random.usize(..EDGES.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.usize(..4)].min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&edge[..width]);
        }
    }
}
