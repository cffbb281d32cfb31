// Moves the clocks of any program, with LD_PRELOAD. The file HOLDFAST_CLOCK has two signed 64-bit numbers of nanoseconds,
// which are added to the wall clock and to the monotonic clock. They may change at any time. A wait that has begun is not
// affected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

static const volatile int64_t none[2];
static const volatile int64_t *shifts;

static struct timespec add(struct timespec time, int64_t shift) {
  int64_t sum = time.tv_sec * (int64_t)SECOND + time.tv_nsec + shift;
  return (struct timespec){sum / SECOND, sum % SECOND};
}

// At the first use of a clock. Two threads at once map it twice, which is harmless.
static const volatile int64_t *map_shifts(void) {
  const char *path = getenv("HOLDFAST_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return none;
  void *memory = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? none : memory;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  // Asks the kernel, not the hidden function: dlsym allocates memory, and jemalloc, which Redis uses, reads the time while
  // it initializes. libfaketime hangs there.
  if (syscall(SYS_clock_gettime, clock, now)) return -1;
  if (!shifts) shifts = map_shifts();
  int64_t shift = 0;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      shift = shifts[0];
      break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      shift = shifts[1];
  }
  *now = add(*now, shift);
  return 0;
}

// Java sleeps until a time of the moved clock, but the kernel uses its own. Each sleep would take longer by the shift.
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!wait) wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  if (!shifts) shifts = map_shifts();
  // Distinguishes the clocks by their value: no machine has been up for 30 years, and no wall clock shows 1980.
  int64_t shift = until->tv_sec > 1000000000 ? shifts[0] : shifts[1];
  struct timespec real = add(*until, -shift);
  return wait(cond, mutex, &real);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec time;
  if (clock_gettime(CLOCK_REALTIME, &time)) return -1;
  *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
  if (zone) *(struct timezone *)zone = (struct timezone){0, 0};
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
