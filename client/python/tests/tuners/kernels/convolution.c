/* Convolves an image of CHANNELS by 3x3. A block of outputs is kept in registers; `innermost` is the loop that is a vector. */
#include "timing.h"

#define CHANNELS 32
#define SIZE 32
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(count) PRAGMA(GCC unroll count)
#define IN(c, y, x) in[((c) * (SIZE + 2) + (y)) * (SIZE + 2) + (x)]
#if weights_last
#define WEIGHT(o, c, ky, kx) packed[(((c) * 3 + (ky)) * 3 + (kx)) * CHANNELS + (o)]
#else
#define WEIGHT(o, c, ky, kx) weights[(((o) * CHANNELS + (c)) * 3 + (ky)) * 3 + (kx)]
#endif

static float packed[CHANNELS * CHANNELS * 9];

static void block(float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weights,
                  int first, int y, int left) {
  float sum[block_x][block_out];
  for (int x = 0; x < block_x; x++)
    for (int o = 0; o < block_out; o++) sum[x][o] = 0;
  for (int c = 0; c < CHANNELS; c++)
    UNROLLED(unroll)
    for (int k = 0; k < 9; k++) {
#if innermost == 0
      for (int x = 0; x < block_x; x++)
        for (int o = 0; o < block_out; o++)
#else
      for (int o = 0; o < block_out; o++)
        for (int x = 0; x < block_x; x++)
#endif
          sum[x][o] += IN(c, y + k / 3, left + x + k % 3) * WEIGHT(first + o, c, k / 3, k % 3);
    }
  for (int o = 0; o < block_out; o++)
    for (int x = 0; x < block_x; x++) out[((first + o) * SIZE + y) * SIZE + left + x] = sum[x][o];
}

static void convolve(float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weights) {
#if weights_last
  for (int o = 0; o < CHANNELS; o++)
    for (int rest = 0; rest < CHANNELS * 9; rest++)
      packed[rest * CHANNELS + o] = weights[o * CHANNELS * 9 + rest];
#endif
  for (int y = 0; y < SIZE; y++)
    for (int first = 0; first < CHANNELS; first += block_out)
      for (int left = 0; left < SIZE; left += block_x) block(out, in, weights, first, y, left);
}

float convolution(float *out, const float *in, const float *weights) {
  FASTEST(convolve(out, in, weights));
}
