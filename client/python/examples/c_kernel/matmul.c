/* Multiplies two matrices in tiles, and prints the seconds of the fastest of three products. */
#include <stdio.h>
#include <time.h>

#define N 512

static float a[N][N], b[N][N], c[N][N];

static void multiply(void) {
  for (int i = 0; i < N; i += TILE_I)
    for (int k = 0; k < N; k += TILE_K)
      for (int j = 0; j < N; j += TILE_J)
        for (int row = i; row < i + TILE_I; row++)
          for (int sum = k; sum < k + TILE_K; sum++)
            for (int column = j; column < j + TILE_J; column++)
              c[row][column] += a[row][sum] * b[sum][column];
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(void) {
  double fastest = 1e9;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i][j] = b[i][j] = 1;
  for (int run = 0; run < 3; run++) {
    double start = seconds();
    multiply();
    double passed = seconds() - start;
    fastest = passed < fastest ? passed : fastest;
  }
  printf("%.9f\n", fastest);
  return c[0][0] == 3 * N && c[N - 1][N - 1] == 3 * N ? 0 : 1;
}
