// Streams, events, captures and graphs, as the runtime's functions of these names see them.
#include "api.h"
#include "errors.h"
#include "machine.h"
#include "memory.h"
#include "work.h"

namespace stand_in {
namespace {

std::shared_ptr<Capture> open_capture(const Capture* wanted) {
  for (const auto& capture : state().captures)
    if (capture.get() == wanted) return capture;
  return nullptr;
}

void finish(Capture* capture) {
  for (Stream* stream : capture->joined) {
    stream->capture = nullptr;
    stream->is_origin = false;
  }
}

}  // namespace

int create_stream(Handle* found, unsigned flags) {
  constexpr unsigned NON_BLOCKING = 1;
  Locked locked;
  if (const int error = standing_error()) return error;
  Stream* made = new Stream{current_device(), false, !(flags & NON_BLOCKING), {}, nullptr, false};
  state().streams.insert(made);
  *found = made;
  return OK;
}

int destroy_stream(Handle handle) {
  Locked locked;
  Stream* stream = find_stream(handle);
  if (!stream || stream->is_legacy) return INVALID_HANDLE;
  if (stream->capture) {
    const auto capture = stream->capture;
    capture->is_invalid = true;
    finish(capture.get());
    state().captures.erase(capture);
  }
  run_stream(stream);  // the device would finish it; here nobody else would
  const int device = stream->device;
  for (Event* event : state().events)
    if (event->stream == stream) event->stream = nullptr;
  state().streams.erase(stream);
  delete stream;
  return standing_error(device);
}

int synchronize_stream(Handle handle) {
  Locked locked;
  Stream* stream = find_stream(handle);
  if (!stream) return INVALID_HANDLE;
  if (const int error = standing_error(stream->device)) return error;
  if (stream->is_legacy)
    if (const int error = reject_legacy_call()) return error;
  if (stream->capture) {
    const bool was_invalid = stream->capture->is_invalid;
    stream->capture->is_invalid = true;
    return was_invalid ? CAPTURE_INVALIDATED : CAPTURE_UNSUPPORTED;
  }
  run_stream(stream);
  return standing_error(stream->device);
}

int synchronize_device() {
  Locked locked;
  if (const int error = standing_error()) return error;
  if (const int error = reject_unsafe_call()) return error;
  run_device(current_device());
  return standing_error();
}

int begin_capture(Handle handle, int mode) {
  Locked locked;
  Stream* stream = find_stream(handle);
  if (!stream) return INVALID_HANDLE;
  if (const int error = standing_error(stream->device)) return error;
  if (stream->is_legacy) return CAPTURE_UNSUPPORTED;
  if (stream->capture) return ILLEGAL_STATE;
  auto made = std::make_shared<Capture>();
  made->mode = mode;
  made->thread = pthread_self();
  made->joined.insert(stream);
  stream->capture = made;
  stream->is_origin = true;
  state().captures.insert(made);
  trace("a capture begins");
  return OK;
}

int end_capture(Handle handle, Handle* graph) {
  constexpr int RELAXED = 2;
  Locked locked;
  *graph = nullptr;
  Stream* stream = find_stream(handle);
  if (!stream || stream->is_legacy) return INVALID_HANDLE;
  if (const int error = standing_error(stream->device)) return error;
  if (!stream->capture) return ILLEGAL_STATE;
  if (!stream->is_origin) return CAPTURE_UNMATCHED;
  const auto capture = stream->capture;
  if (capture->mode != RELAXED && !pthread_equal(capture->thread, pthread_self())) {
    capture->is_invalid = true;
    return CAPTURE_WRONG_THREAD;
  }
  finish(capture.get());
  state().captures.erase(capture);
  trace("a capture ends, of " + std::to_string(capture->work.size()) +
        (capture->is_invalid ? ", invalid" : ""));
  if (capture->is_invalid) return CAPTURE_INVALIDATED;
  if (!capture->unjoined.empty()) return CAPTURE_UNJOINED;
  Graph* made = new Graph{capture->work};
  state().graphs.insert(made);
  *graph = made;
  return OK;
}

int instantiate_graph(Handle* executable, Handle graph) {
  Locked locked;
  if (const int error = standing_error()) return error;
  if (!state().graphs.count(static_cast<Graph*>(graph))) return INVALID_VALUE;
  Graph* made = new Graph(*static_cast<Graph*>(graph));
  state().graphs.insert(made);
  *executable = made;
  return OK;
}

int launch_graph(Handle executable, Handle stream) {
  Locked locked;
  if (!state().graphs.count(static_cast<Graph*>(executable))) return INVALID_VALUE;
  const std::vector<Work> work = static_cast<Graph*>(executable)->work;
  return submit(stream, [work] {
    for (const Work& run : work)
      if (const int error = run()) return error;
    return (int)OK;
  });
}

int destroy_graph(Handle graph) {
  Locked locked;
  if (!state().graphs.erase(static_cast<Graph*>(graph))) return INVALID_VALUE;
  delete static_cast<Graph*>(graph);
  return standing_error();
}

int create_event(Handle* found) {
  Locked locked;
  if (const int error = standing_error()) return error;
  Event* made = new Event;
  state().events.insert(made);
  *found = made;
  return OK;
}

int destroy_event(Handle handle) {
  Locked locked;
  if (!state().events.erase(static_cast<Event*>(handle))) return INVALID_HANDLE;
  delete static_cast<Event*>(handle);
  return standing_error();
}

int record_event(Handle handle, Handle stream_handle) {
  Locked locked;
  Event* event = static_cast<Event*>(handle);
  Stream* stream = find_stream(stream_handle);
  if (!stream || !state().events.count(event)) return INVALID_HANDLE;
  if (const int error = standing_error(stream->device)) return error;
  if (stream->capture && !stream->capture->is_invalid) {
    stream->capture->unjoined.erase(stream);
    event->captured_by = stream->capture.get();
    event->is_recorded = true;
    return OK;
  }
  auto done = std::make_shared<uint64_t>(0);
  const int device = stream->device;
  const int error = submit(stream_handle, [event, done, device] {
    // It may have been destroyed, or recorded again, since.
    if (!state().events.count(event) || event->sequence != *done) return (int)OK;
    event->is_done = true;
    event->when_ns = now_ns(device);
    return (int)OK;
  });
  if (error) return error;
  event->captured_by = nullptr;
  event->is_recorded = true;
  event->is_done = false;
  event->stream = stream;
  event->sequence = *done = stream->queue.back().sequence;
  return OK;
}

int wait_for_event(Handle stream_handle, Handle handle) {
  Locked locked;
  Event* event = static_cast<Event*>(handle);
  Stream* stream = find_stream(stream_handle);
  if (!stream || !state().events.count(event)) return INVALID_HANDLE;
  if (const int error = standing_error(stream->device)) return error;
  const auto capture = open_capture(event->captured_by);
  if (!capture) {
    Stream* other = event->stream;
    const uint64_t sequence = event->sequence;
    if (!other || stream->capture) return stream->is_legacy ? reject_legacy_call() : (int)OK;
    return submit(stream_handle, [other, sequence] {
      if (other->is_legacy || state().streams.count(other)) run_until(other, sequence);
      return (int)OK;
    });
  }
  if (stream->is_legacy) {
    capture->is_invalid = true;
    return CAPTURE_IMPLICIT;
  }
  if (stream->capture && stream->capture != capture) {
    capture->is_invalid = stream->capture->is_invalid = true;
    return CAPTURE_MERGE;
  }
  if (!stream->capture) {
    stream->capture = capture;
    capture->joined.insert(stream);
    capture->unjoined.insert(stream);
  }
  return OK;
}

int synchronize_event(Handle handle) {
  Locked locked;
  Event* event = static_cast<Event*>(handle);
  if (!state().events.count(event)) return INVALID_HANDLE;
  if (const int error = standing_error()) return error;
  if (event->captured_by) {
    if (const auto capture = open_capture(event->captured_by)) capture->is_invalid = true;
    return CAPTURED_EVENT;
  }
  if (event->stream) {
    const int device = event->stream->device;
    run_until(event->stream, event->sequence);
    hide_memory();
    return standing_error(device);
  }
  return OK;
}

int query_event(Handle handle) {
  Locked locked;
  Event* event = static_cast<Event*>(handle);
  if (!state().events.count(event)) return INVALID_HANDLE;
  if (const int error = standing_error()) return error;
  if (event->captured_by) return CAPTURED_EVENT;
  // Work goes on by itself on a device: who asks again and again is answered in the end.
  const bool was_done = event->is_done || !event->is_recorded;
  if (!was_done && event->stream) {
    run_until(event->stream, event->sequence);
    hide_memory();
  }
  return was_done ? OK : NOT_READY;
}

int elapsed_ms(float* milliseconds, Handle first, Handle second) {
  Locked locked;
  Event *begin = static_cast<Event*>(first), *end = static_cast<Event*>(second);
  if (const int error = standing_error()) return error;
  if (!state().events.count(begin) || !state().events.count(end)) return INVALID_HANDLE;
  if (!begin->is_recorded || !end->is_recorded) return INVALID_HANDLE;
  if (begin->captured_by || end->captured_by) return CAPTURED_EVENT;
  if (!begin->is_done || !end->is_done) return NOT_READY;
  constexpr float RESOLUTION_MS = 0.0005f;
  const float elapsed = (end->when_ns - begin->when_ns) / 1e6f;
  *milliseconds = elapsed > RESOLUTION_MS ? elapsed : RESOLUTION_MS;
  return OK;
}

}  // namespace stand_in
