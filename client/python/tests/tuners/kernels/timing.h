/* The milliseconds of a call: the fastest of RUNS, since other processes only make it slower. */
#include <time.h>

#define RUNS 3

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

#define FASTEST(call)                          \
  do {                                         \
    float fastest = 1e9f;                      \
    for (int run = 0; run < RUNS; run++) {     \
      double start = milliseconds();           \
      call;                                    \
      float passed = milliseconds() - start;   \
      fastest = passed < fastest ? passed : fastest; \
    }                                          \
    return fastest;                            \
  } while (0)
