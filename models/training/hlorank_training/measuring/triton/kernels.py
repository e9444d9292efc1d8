"""Triton kernels whose tiles are measured.

Blocks are the constants in capitals, as is usual for Triton. Sizes are multiples of 16, and arrays
are row-major and whole, so that a kernel is compiled once for all shapes.
"""

import triton
import triton.language as tl


@triton.jit
def _activated(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    if ACTIVATION == "gelu":
        x = x * tl.sigmoid(1.702 * x)
    return x


@triton.jit
def _place(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Returns the block of a program: eight blocks of rows share the columns that they read."""
    number = tl.program_id(0)
    rows = tl.cdiv(m, BLOCK_M)
    columns = tl.cdiv(n, BLOCK_N)
    group = 8 * columns
    first = number // group * 8
    height = tl.minimum(rows - first, 8)
    return first + number % group % height, number % group // height


@triton.jit
def matmul(
    a,
    b,
    extra,
    out,
    m,
    n,
    k,
    TRANSPOSED: tl.constexpr,
    EXTRA: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Computes activation(a[B,m,k] @ b[B,k,n] + extra); b is [B,n,k] if it is transposed. ``extra``
    is a bias [n], a residual [B,m,n], or absent."""
    batch = tl.program_id(1).to(tl.int64)
    row, column = _place(m, n, BLOCK_M, BLOCK_N)
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_at = a + batch * m * k + rows[:, None] * k + inner[None, :]
    if TRANSPOSED:
        b_at = b + batch * n * k + columns[None, :] * k + inner[:, None]
    else:
        b_at = b + batch * k * n + inner[:, None] * n + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        x = tl.load(a_at, mask=(rows[:, None] < m) & (inner[None, :] < left), other=0.0)
        y = tl.load(b_at, mask=(columns[None, :] < n) & (inner[:, None] < left), other=0.0)
        total = tl.dot(x, y, total)
        a_at += BLOCK_K
        b_at += BLOCK_K if TRANSPOSED else BLOCK_K * n
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    at = batch * m * n + rows[:, None] * n + columns[None, :]
    if EXTRA == "bias":
        total += tl.load(extra + columns, mask=columns < n, other=0.0)[None, :].to(tl.float32)
    if EXTRA == "residual":
        total += tl.load(extra + at, mask=inside, other=0.0).to(tl.float32)
    total = _activated(total, ACTIVATION)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def gated(
    a,
    b,
    c,
    out,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Computes silu(a[m,k] @ b[k,n]) * (a @ c[k,n])."""
    row, column = _place(m, n, BLOCK_M, BLOCK_N)
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_at = a + rows[:, None] * k + inner[None, :]
    weight = inner[:, None] * n + columns[None, :]
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    value = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        inside = (columns[None, :] < n) & (inner[:, None] < left)
        x = tl.load(a_at, mask=(rows[:, None] < m) & (inner[None, :] < left), other=0.0)
        gate = tl.dot(x, tl.load(b + weight, mask=inside, other=0.0), gate)
        value = tl.dot(x, tl.load(c + weight, mask=inside, other=0.0), value)
        a_at += BLOCK_K
        weight += BLOCK_K * n
    result = gate * tl.sigmoid(gate) * value
    at = rows[:, None] * n + columns[None, :]
    tl.store(
        out + at,
        result.to(out.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )


@triton.jit
def softmax(x, out, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Computes the softmax of the rows of x[m,n]."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, n, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        at = rows[:, None] * n + columns[None, :]
        value = tl.load(x + at, mask=inside, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, 1))
        # Rows behind the last have no largest value.
        larger = tl.where(rows < m, larger, 0.0)
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(value - larger[:, None]), 1)
        largest = larger
    for start in range(0, n, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        at = rows[:, None] * n + columns[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        result = tl.exp(value - largest[:, None]) / total[:, None]
        tl.store(out + at, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def norm(
    x,
    weight,
    bias,
    out,
    m,
    n,
    CENTRED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Normalizes the rows of x[m,n]: layer normalization if centred, else the root mean square."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M,), tl.float32)
    squares = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, n, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        at = rows[:, None] * n + columns[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        total += tl.sum(value, 1)
        squares += tl.sum(value * value, 1)
    mean = total / n
    if not CENTRED:
        mean = mean * 0.0
    scale = tl.rsqrt(squares / n - mean * mean + 1e-5)
    for start in range(0, n, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        at = rows[:, None] * n + columns[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        factor = tl.load(weight + columns, mask=columns < n, other=0.0).to(tl.float32)
        result = (value - mean[:, None]) * scale[:, None] * factor[None, :]
        if CENTRED:
            result += tl.load(bias + columns, mask=columns < n, other=0.0)[None, :].to(tl.float32)
        tl.store(out + at, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def reduce_rows(
    x, out, m, n, OPERATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Computes the sum or the maximum of every row of x[m,n]."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    absent = 0.0 if OPERATION == "sum" else float("-inf")
    found = tl.full((BLOCK_M, BLOCK_N), absent, tl.float32)
    for start in range(0, n, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        value = tl.load(x + rows[:, None] * n + columns[None, :], mask=inside, other=absent)
        if OPERATION == "sum":
            found += value.to(tl.float32)
        else:
            found = tl.maximum(found, value.to(tl.float32))
    result = tl.sum(found, 1) if OPERATION == "sum" else tl.max(found, 1)
    tl.store(out + rows, result.to(out.dtype.element_ty), mask=rows < m)


@triton.jit
def reduce_columns(
    x, out, m, n, OPERATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Computes the sum or the maximum of every column of x[m,n]."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    absent = 0.0 if OPERATION == "sum" else float("-inf")
    found = tl.full((BLOCK_M, BLOCK_N), absent, tl.float32)
    for start in range(0, m, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        value = tl.load(x + rows[:, None] * n + columns[None, :], mask=inside, other=absent)
        if OPERATION == "sum":
            found += value.to(tl.float32)
        else:
            found = tl.maximum(found, value.to(tl.float32))
    result = tl.sum(found, 0) if OPERATION == "sum" else tl.max(found, 0)
    tl.store(out + columns, result.to(out.dtype.element_ty), mask=columns < n)


@triton.jit
def pointwise(
    x, y, out, m, n, OPERATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Computes x[m,n] transposed, gelu(x + y[n]), or x * y[m,n] + x."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    at = rows[:, None] * n + columns[None, :]
    value = tl.load(x + at, mask=inside, other=0.0)
    if OPERATION == "transpose":
        at = columns[None, :] * m + rows[:, None]
    if OPERATION == "bias_gelu":
        bias = tl.load(y + columns, mask=columns < n, other=0.0)
        value = _activated(value.to(tl.float32) + bias[None, :].to(tl.float32), "gelu")
    if OPERATION == "multiply_add":
        value = value * tl.load(y + at, mask=inside, other=0.0) + value
    tl.store(out + at, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    m,
    CAUSAL: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Computes softmax(q k^T) v of every head, each [heads,m,WIDTH], by blocks of keys."""
    SCALE: tl.constexpr = 0.125 if WIDTH == 64 else 0.08838834764
    head = tl.program_id(1).to(tl.int64) * m * WIDTH
    first = tl.program_id(0) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, WIDTH)
    own = head + rows[:, None] * WIDTH + inner[None, :]
    query = tl.load(q + own, mask=rows[:, None] < m, other=0.0)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    result = tl.zeros((BLOCK_M, WIDTH), tl.float32)
    end = tl.minimum(first + BLOCK_M, m) if CAUSAL else m
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        at = head + keys[:, None] * WIDTH + inner[None, :]
        key = tl.load(k + at, mask=keys[:, None] < m, other=0.0)
        product = tl.dot(query, tl.trans(key)) * SCALE
        seen = keys[None, :] < m
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        product = tl.where(seen, product, -1e30)
        larger = tl.maximum(largest, tl.max(product, 1))
        share = tl.exp(product - larger[:, None])
        kept = tl.exp(largest - larger)
        total = total * kept + tl.sum(share, 1)
        value = tl.load(v + at, mask=keys[:, None] < m, other=0.0)
        result = tl.dot(share.to(value.dtype), value, result * kept[:, None])
        largest = larger
    result = result / total[:, None]
    tl.store(out + own, result.to(out.dtype.element_ty), mask=rows[:, None] < m)
