/* Multiplies an M x K by a K x N matrix in tiles, and prints the seconds of the fastest of three products. */
#include <stdio.h>
#include <time.h>

#ifndef M
#define M 512
#define N 512
#define K 512
#endif
#define LESS(a, b) ((a) < (b) ? (a) : (b))

static float a[M][K], b[K][N], c[M][N];

static void multiply(void) {
  for (int i = 0; i < M; i += TILE_I)
    for (int k = 0; k < K; k += TILE_K)
      for (int j = 0; j < N; j += TILE_J)
        for (int row = i; row < LESS(i + TILE_I, M); row++)
          for (int sum = k; sum < LESS(k + TILE_K, K); sum++)
            for (int column = j; column < LESS(j + TILE_J, N); column++)
              c[row][column] += a[row][sum] * b[sum][column];
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(void) {
  double fastest = 1e9;
  for (int i = 0; i < M; i++)
    for (int k = 0; k < K; k++) a[i][k] = 1;
  for (int k = 0; k < K; k++)
    for (int j = 0; j < N; j++) b[k][j] = 1;
  for (int run = 0; run < 3; run++) {
    double start = seconds();
    multiply();
    double passed = seconds() - start;
    fastest = passed < fastest ? passed : fastest;
  }
  printf("%.9f\n", fastest);
  return c[0][0] == 3 * K && c[M - 1][N - 1] == 3 * K ? 0 : 1;
}
