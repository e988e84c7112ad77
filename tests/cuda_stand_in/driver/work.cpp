#include "work.h"

#include <dlfcn.h>
#include <unistd.h>

#include "errors.h"
#include "machine.h"
#include "memory.h"

namespace stand_in {
namespace {

constexpr size_t MAX_QUEUED = 1000;  // a device's queue is not endless: the oldest run then

const pid_t process = getpid();
int standing[MAX_DEVICES];
thread_local int last, device_of_thread;
uint64_t next_sequence = 1;
int64_t device_ns[MAX_DEVICES];

int64_t cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

Stream* legacy_stream(int device) {
  static Stream* streams[MAX_DEVICES];
  if (!streams[device]) streams[device] = new Stream{device, true, true, {}, nullptr, false};
  return streams[device];
}

void run_front(Stream* stream) {
  const Work run = std::move(stream->queue.front().run);
  stream->queue.pop_front();
  if (standing_error(stream->device)) return;
  if (const int error = run()) fail(stream->device, error);
}

// What has to be done before work of this stream with this number: of the legacy stream that of all
// blocking ones, and the other way round.
void run_earlier(Stream* stream, uint64_t sequence) {
  if (!stream->is_legacy) {
    if (stream->is_blocking) run_until(legacy_stream(stream->device), sequence - 1);
    return;
  }
  for (Stream* other : state().streams)
    if (other->is_blocking && other->device == stream->device) run_until(other, sequence - 1);
}

}  // namespace

State& state() {
  static State* const only = new State;
  return *only;
}

int standing_error(int device) {
  if (getpid() != process) return NOT_INITIALIZED;  // CUDA does not survive a fork
  if (!standing[device] && is_lost(device)) standing[device] = UNKNOWN;
  return standing[device];
}
int standing_error() { return standing_error(device_of_thread); }
void fail(int device, int error) {
  if (!standing[device]) standing[device] = error;
}
int remember(int error) {
  if (error) last = error;
  return error;
}
int last_error(bool clears) {
  const int found = device_count() && standing_error() ? standing_error() : last;
  if (clears) last = OK;
  return found;
}

int current_device() { return device_of_thread; }
int use_device(int device) {
  if (!device_count()) return NO_DEVICE;
  if (device < 0 || device >= device_count()) return INVALID_DEVICE;
  device_of_thread = device;
  return standing_error();
}

Stream* find_stream(Handle handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return legacy_stream(current_device());
  Stream* stream = static_cast<Stream*>(handle);
  return state().streams.count(stream) ? stream : nullptr;
}

void run_until(Stream* stream, uint64_t sequence) {
  while (!stream->queue.empty() && stream->queue.front().sequence <= sequence) {
    const uint64_t first = stream->queue.front().sequence;
    run_earlier(stream, first);
    if (!stream->queue.empty() && stream->queue.front().sequence == first) run_front(stream);
  }
}

int64_t now_ns(int device) { return pace() ? device_ns[device] : cpu_ns(); }

void spend(int device, uint64_t steps) {
  constexpr int64_t LAUNCH_NS = 2000;
  device_ns[device] += LAUNCH_NS + (int64_t)steps * pace() / 1000;
}

void show_clock() {
  static bool is_shown = false;
  const auto run = (int (*)(const char*))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
  if (!pace() || is_shown || !run) return;
  is_shown = true;
  for (int64_t& clock : device_ns) clock = cpu_ns();
  const int held = ((int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure"))();
  run("import ctypes, time\n"
      "def _(look=ctypes.CDLL('libcuda.so.1').stand_in_look):\n"
      "  look.restype = ctypes.c_int64\n"
      "  time.perf_counter_ns, time.perf_counter = look, lambda: look() / 1e9\n"
      "_()\n");
  ((void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release"))(held);
}

void run_stream(Stream* stream) {
  run_until(stream, UINT64_MAX);
  if (stream->is_legacy) run_earlier(stream, next_sequence);
  hide_memory();
}

void run_device(int device) {
  run_stream(legacy_stream(device));
  for (Stream* stream : state().streams)
    if (stream->device == device) run_until(stream, UINT64_MAX);
  hide_memory();
}

int submit(Handle handle, Work work) {
  Stream* stream = find_stream(handle);
  if (!stream) return INVALID_HANDLE;
  if (const int error = standing_error(stream->device)) return error;
  if (stream->is_legacy)
    if (const int error = reject_legacy_call()) return error;
  if (stream->capture) {
    if (stream->capture->is_invalid) return CAPTURE_INVALIDATED;
    stream->capture->work.push_back(std::move(work));
    return OK;
  }
  stream->queue.push_back({next_sequence++, std::move(work)});
  if (stream->queue.size() > MAX_QUEUED) {
    run_until(stream, stream->queue.front().sequence);
    hide_memory();
  }
  return OK;
}

int submit_and_wait(Handle handle, Work work) {
  if (const int error = submit(handle, std::move(work))) return error;
  Stream* stream = find_stream(handle);
  if (stream->capture) return OK;
  run_stream(stream);
  return standing_error(stream->device);
}

int reject_unsafe_call() {
  for (const auto& capture : state().captures) {
    const bool is_own = pthread_equal(capture->thread, pthread_self());
    if (capture->mode == 2 || (capture->mode == 1 && !is_own)) continue;
    capture->is_invalid = true;
    return CAPTURE_UNSUPPORTED;
  }
  return OK;
}

int reject_legacy_call() {
  int error = OK;
  for (const auto& capture : state().captures)
    for (const Stream* stream : capture->joined)
      if (stream->is_blocking && stream->device == current_device()) {
        capture->is_invalid = true;
        error = CAPTURE_IMPLICIT;
      }
  return error;
}

}  // namespace stand_in

// Whoever waits for a time looks again and again: that, too, takes some.
extern "C" int64_t stand_in_look() {
  constexpr int64_t LOOK_NS = 100;
  stand_in::Locked locked;
  return stand_in::device_ns[stand_in::current_device()] += LOOK_NS;
}
