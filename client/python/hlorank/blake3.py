"""BLAKE3 in its key derivation mode, in NumPy, on all chunks of an input at a time.

Source: the BLAKE3 specification, https://github.com/BLAKE3-team/BLAKE3-specs.
"""

import numpy as np

_INITIAL = np.array(
    [
        *(0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A),
        *(0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19),
    ],
    np.uint32,
)
_PERMUTATION = np.array([2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8])
_ROUNDS = 7

_BLOCK, _CHUNK = 64, 1024
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT = 1, 2, 4, 8
_CONTEXT, _MATERIAL = 32, 64


def digest(data: bytes) -> bytes:
    """Returns the 32 bytes of the BLAKE3 hash."""
    return _hash(data, _INITIAL, 0)


def derive_key(context: str, material: bytes) -> bytes:
    """Returns the 32 bytes that BLAKE3 derives from ``material`` under ``context``."""
    key = np.frombuffer(_hash(context.encode(), _INITIAL, _CONTEXT), "<u4").astype(np.uint32)
    return _hash(material, key, _MATERIAL)


def _hash(data: bytes, key: np.ndarray, mode: int) -> bytes:
    chunks = max(1, -(-len(data) // _CHUNK))
    values = _chunk_values(data, chunks, key, mode)
    while len(values) > 1:
        values = _parent_values(values, key, mode)
    return values[0].astype("<u4").tobytes()


def _chunk_values(data: bytes, chunks: int, key: np.ndarray, mode: int) -> np.ndarray:
    """Returns the chaining value of each chunk: u32 [chunks, 8]."""
    words = np.zeros(chunks * _CHUNK // 4, "<u4")
    words.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
    words = words.astype(np.uint32).reshape(chunks, _CHUNK // _BLOCK, 16)
    lengths = np.full(chunks, _CHUNK)
    lengths[-1] = len(data) - (chunks - 1) * _CHUNK
    last_block = np.maximum(lengths - 1, 0) // _BLOCK
    values = np.tile(key, (chunks, 1))
    for block in range(last_block[0] + 1):
        # Only the last chunk may be incomplete.
        active = slice(chunks if block <= last_block[-1] else chunks - 1)
        flags = np.where(last_block[active] == block, _CHUNK_END, 0) | mode
        flags |= _CHUNK_START if block == 0 else 0
        flags |= np.where((chunks == 1) & (last_block[active] == block), _ROOT, 0)
        sizes = np.minimum(lengths[active] - block * _BLOCK, _BLOCK)
        counters = np.arange(chunks)[active]
        values[active] = _compress(values[active], words[active, block], counters, sizes, flags)
    return values


def _parent_values(values: np.ndarray, key: np.ndarray, mode: int) -> np.ndarray:
    """Returns the next level of the tree; an unpaired last value moves up unchanged."""
    pairs, odd = divmod(len(values), 2)
    root = _ROOT if len(values) == 2 else 0
    blocks = values[: 2 * pairs].reshape(pairs, 16)
    zeros = np.zeros(pairs, np.int64)
    keys, flags = np.tile(key, (pairs, 1)), zeros + (_PARENT | root | mode)
    parents = _compress(keys, blocks, zeros, zeros + _BLOCK, flags)
    return np.concatenate([parents, values[-1:]]) if odd else parents


def _compress(
    values: np.ndarray,
    blocks: np.ndarray,
    counters: np.ndarray,
    sizes: np.ndarray,
    flags: np.ndarray,
) -> np.ndarray:
    """Compresses chaining values u32 [n, 8] and blocks u32 [n, 16] to [n, 8]."""
    # The four rows of the state, each [4, n].
    a, b = values.T[:4].copy(), values.T[4:].copy()
    c = np.tile(_INITIAL[:4, None], len(values))
    d = np.stack([counters & 0xFFFFFFFF, counters >> 32, sizes, flags]).astype(np.uint32)
    message = blocks.T
    for _ in range(_ROUNDS):
        a, b, c, d = _mixed(a, b, c, d, message[0:8:2], message[1:8:2])
        b, c, d = b[_LEFT[1]], c[_LEFT[2]], d[_LEFT[3]]
        a, b, c, d = _mixed(a, b, c, d, message[8::2], message[9::2])
        b, c, d = b[_LEFT[3]], c[_LEFT[2]], d[_LEFT[1]]
        message = message[_PERMUTATION]
    return np.concatenate([a ^ c, b ^ d]).T


_LEFT = [np.roll(np.arange(4), -by) for by in range(4)]
"""Column indices for a rotation of a row to the left, by 0 to 3 places."""

_Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _mixed(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, x: np.ndarray, y: np.ndarray
) -> _Rows:
    """Applies the quarter round to four columns."""
    for word, (of_d, of_b) in ((x, (16, 12)), (y, (8, 7))):
        a = a + b + word
        d = _rotated(d ^ a, of_d)
        c = c + d
        b = _rotated(b ^ c, of_b)
    return a, b, c, d


def _rotated(words: np.ndarray, by: int) -> np.ndarray:
    return words >> np.uint32(by) | words << np.uint32(32 - by)
