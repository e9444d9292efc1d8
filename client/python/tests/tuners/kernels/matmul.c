/* Multiplies two matrices in tiles; `order` is the order of the loops in a tile. */
#include <string.h>

#include "timing.h"

#define N 256
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(count) PRAGMA(GCC unroll count)
#define ROWS for (int i = ii; i < ii + tile_i; i++)
#define SUMS for (int k = kk; k < kk + tile_k; k++)
#define COLUMNS for (int j = jj; j < jj + tile_j; j++)
#define ADD c[i * N + j] += a[i * N + k] * b[k * N + j]

static void multiply(float *__restrict__ c, const float *__restrict__ a, const float *__restrict__ b) {
  memset(c, 0, N * N * sizeof(float));
  for (int ii = 0; ii < N; ii += tile_i)
    for (int kk = 0; kk < N; kk += tile_k)
      for (int jj = 0; jj < N; jj += tile_j) {
#if order == 0
        ROWS SUMS UNROLLED(unroll) COLUMNS ADD;
#elif order == 1
        SUMS ROWS UNROLLED(unroll) COLUMNS ADD;
#else
        ROWS COLUMNS UNROLLED(unroll) SUMS ADD;
#endif
      }
}

float matmul(float *c, const float *a, const float *b) { FASTEST(multiply(c, a, b)); }
