/* Blurs an image by 3x3 in two passes. `store` is where the first pass is kept: 0 is the whole image, 1 is a tile, 2 is nowhere. */
#include "timing.h"

#define WIDTH 1024
#define HEIGHT 768
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(count) PRAGMA(GCC unroll count)
#define IN(y, x) in[(y) * (WIDTH + 2) + (x)]
#define ROW(y, x) (IN(y, x) + IN(y, (x) + 1) + IN(y, (x) + 2))

static float rows[(HEIGHT + 2) * WIDTH];

static void tile(float *__restrict__ out, const float *__restrict__ in, int top, int left) {
#if store == 1
  for (int y = 0; y < tile_y + 2; y++)
    UNROLLED(unroll)
    for (int x = 0; x < tile_x; x++) rows[y * tile_x + x] = ROW(top + y, left + x);
#define FIRST(y, x) rows[(y) * tile_x + (x)]
#elif store == 0
#define FIRST(y, x) rows[(top + (y)) * WIDTH + left + (x)]
#else
#define FIRST(y, x) ROW(top + (y), left + (x))
#endif
  for (int y = 0; y < tile_y; y++)
    UNROLLED(unroll)
    for (int x = 0; x < tile_x; x++)
      out[(top + y) * WIDTH + left + x] = (FIRST(y, x) + FIRST(y + 1, x) + FIRST(y + 2, x)) / 9;
}

static void blur_image(float *__restrict__ out, const float *__restrict__ in) {
#if store == 0
  for (int y = 0; y < HEIGHT + 2; y++)
    UNROLLED(unroll)
    for (int x = 0; x < WIDTH; x++) rows[y * WIDTH + x] = ROW(y, x);
#endif
#if columns_first
  for (int left = 0; left < WIDTH; left += tile_x)
    for (int top = 0; top < HEIGHT; top += tile_y) tile(out, in, top, left);
#else
  for (int top = 0; top < HEIGHT; top += tile_y)
    for (int left = 0; left < WIDTH; left += tile_x) tile(out, in, top, left);
#endif
}

float blur(float *out, const float *in) { FASTEST(blur_image(out, in)); }
