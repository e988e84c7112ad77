/* What the kernels call: threads and memory. The generated file has this one after its tables. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static _Thread_local char last_error[512];

const char* model_error(void) { return last_error; }

static int failed(const char* what, const char* detail) {
  snprintf(last_error, sizeof last_error, "%s%s", what, detail);
  return -1;
}

__attribute__((visibility("hidden"))) void TVMFFIErrorSetRaisedFromCStrParts(
    const char* kind, const char** parts, int32_t count) {
  size_t used = (size_t)snprintf(last_error, sizeof last_error, "%s: ", kind);
  for (int32_t i = 0; i < count && used < sizeof last_error; ++i)
    if (parts[i]) used += (size_t)snprintf(last_error + used, sizeof last_error - used, "%s", parts[i]);
}

/* Threads wait for work: at first in a loop, then asleep. A launch that finds them at work for
   another instance does all by itself. */
typedef struct { void* sync; int32_t count; } environment;
typedef int (*task)(int, environment*, void*);
enum { SPINS = 20000 };
static inline void breathe(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static struct {
  pthread_mutex_t owner, sleep;
  pthread_cond_t wake;
  pthread_t threads[THREADS];
  int started;
  task run;
  void* data;
  environment env;
  _Atomic int generation, left, failures;
  _Atomic int arrived, passed; /* of a barrier between them */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .sleep = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER};

static void* serve(void* number) {
  int me = (int)(intptr_t)number, seen = 0;
  for (;;) {
    for (int spin = 0; atomic_load(&pool.generation) == seen && spin < SPINS; ++spin)
      breathe();
    if (atomic_load(&pool.generation) == seen) {
      pthread_mutex_lock(&pool.sleep);
      while (atomic_load(&pool.generation) == seen) pthread_cond_wait(&pool.wake, &pool.sleep);
      pthread_mutex_unlock(&pool.sleep);
    }
    ++seen;
    for (int part = me; part < pool.env.count; part += THREADS)
      if (pool.run(part, &pool.env, pool.data)) atomic_fetch_add(&pool.failures, 1);
    atomic_fetch_sub(&pool.left, 1);
  }
  return NULL;
}

/* A child of fork has none of the threads, and starts its own. */
static void forked(void) {
  pthread_mutex_init(&pool.owner, NULL);
  pthread_mutex_init(&pool.sleep, NULL);
  pthread_cond_init(&pool.wake, NULL);
  pool.started = 0;
  atomic_store(&pool.generation, 0);
  atomic_store(&pool.arrived, 0);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, forked); }

/* Tells a task that nobody runs beside it: its environment has no `sync`. */
static int alone(task run, void* data, int count) {
  environment env = {NULL, count};
  int wrong = 0;
  for (int part = 0; part < count; ++part) wrong |= run(part, &env, data);
  return wrong ? -1 : 0;
}

static int launch(task run, void* data, int count) {
  if (count <= 0) count = THREADS;
  if (THREADS == 1 || count == 1 || pthread_mutex_trylock(&pool.owner)) return alone(run, data, count);
  while (pool.started < THREADS - 1) {
    if (pthread_create(&pool.threads[pool.started], NULL, serve, (void*)(intptr_t)(pool.started + 1))) break;
    pthread_detach(pool.threads[pool.started++]);
  }
  if (pool.started < THREADS - 1) {
    pthread_mutex_unlock(&pool.owner);
    return alone(run, data, count);
  }
  pool.run = run, pool.data = data, pool.env.count = count, pool.env.sync = &pool;
  atomic_store(&pool.failures, 0);
  atomic_store(&pool.left, THREADS - 1);
  pthread_mutex_lock(&pool.sleep);
  atomic_fetch_add(&pool.generation, 1);
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.sleep);
  int wrong = 0;
  for (int part = 0; part < count; part += THREADS) wrong |= run(part, &pool.env, data);
  for (int spin = 0; atomic_load(&pool.left); ++spin) {
    if (spin < SPINS) breathe();
    else sched_yield();
  }
  wrong |= atomic_load(&pool.failures);
  pthread_mutex_unlock(&pool.owner);
  return wrong ? -1 : 0;
}

static void* workspace(int device, int id, uint64_t size, int code, int bits) {
  (void)device, (void)id, (void)code, (void)bits;
  return aligned_alloc(64, (size + 63) / 64 * 64);
}

static int workspace_end(int device, int id, void* data) {
  (void)device, (void)id;
  free(data);
  return 0;
}

/* The compiled kernels call through these, and have them as weak symbols. */
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int (*__TVMBackendParallelLaunch)(task, void*, int) = launch;
HIDDEN void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = workspace;
HIDDEN int (*__TVMBackendFreeWorkspace)(int, int, void*) = workspace_end;
