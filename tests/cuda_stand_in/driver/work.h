// Work that is given to a device: queued in streams, and run as late as may be.
//
// A real device may be done at once or late; a program is right only if it is right both ways. So
// work runs here when something must be known: at a synchronization, when a copy to pageable memory
// of the host must come back, before memory is freed. Whoever forgot to wait reads what was there
// before.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace stand_in {

typedef void* Handle;
typedef std::function<int()> Work;  // returns an error that stays, or OK

struct Capture;

struct Queued {
  uint64_t sequence;  // over all streams: what was given earlier has a smaller one
  Work run;
};

struct Stream {
  int device;
  bool is_legacy, is_blocking;  // blocking: it waits for the legacy stream, which waits for it
  std::deque<Queued> queue;
  std::shared_ptr<Capture> capture;
  bool is_origin = false;  // of its capture
};

struct Event {
  Stream* stream = nullptr;  // in which it was recorded last
  uint64_t sequence = 0;
  bool is_recorded = false, is_done = false;
  int64_t when_ns = 0;
  Capture* captured_by = nullptr;
};

struct Capture {
  int mode;  // 0 global, 1 of the thread, 2 relaxed
  pthread_t thread;
  bool is_invalid = false;
  std::vector<Work> work;
  std::set<Stream*> joined, unjoined;
};

struct Graph {
  std::vector<Work> work;
};

// All that this process knows of CUDA; every function of the API holds the lock.
struct State {
  std::recursive_mutex lock;
  std::set<Stream*> streams;  // those that were made; the legacy ones are not among them
  std::set<Event*> events;
  std::set<Graph*> graphs;
  std::set<std::shared_ptr<Capture>> captures;
};
State& state();

class Locked {
 public:
  Locked() : hold_(state().lock) {}

 private:
  std::lock_guard<std::recursive_mutex> hold_;
};

// Errors that stay: after one, every call for the device gives it.
int standing_error(int device);
int standing_error();  // of the current device
void fail(int device, int error);
int remember(int error);  // for cudaGetLastError of this thread; returns it
int last_error(bool clears);

int current_device();
int use_device(int device);

Stream* find_stream(Handle handle);  // null where there is none; that of the device for 0, 1 and 2
int submit(Handle stream, Work work);           // queued, or captured
int submit_and_wait(Handle stream, Work work);  // for copies that a caller sees the end of
// The clock of a device, in nanoseconds: that of the CPU, or the time of its work if it is paced.
int64_t now_ns(int device);
void spend(int device, uint64_t steps);
// Makes a paced device's clock the performance counter of the Python that calls this, so that
// whoever waits for the device measures the same on every machine, however busy.
void show_clock();

void run_until(Stream* stream, uint64_t sequence);
void run_stream(Stream* stream);
void run_device(int device);

// What a call gives that is not allowed while somebody captures; OK where nobody does.
int reject_unsafe_call();
// What a call on the legacy stream gives while a blocking stream captures; OK where none does.
int reject_legacy_call();

}  // namespace stand_in
