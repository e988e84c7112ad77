// What the functions of both libraries do; the libraries only carry their names.
#pragma once
#include <stddef.h>

#include "work.h"

namespace stand_in {

int create_stream(Handle* stream, unsigned flags);
int destroy_stream(Handle stream);
int synchronize_stream(Handle stream);
int synchronize_device();
int begin_capture(Handle stream, int mode);
int end_capture(Handle stream, Handle* graph);
int instantiate_graph(Handle* executable, Handle graph);
int launch_graph(Handle executable, Handle stream);
int destroy_graph(Handle graph);
int create_event(Handle* event);
int destroy_event(Handle event);
int record_event(Handle event, Handle stream);
int wait_for_event(Handle stream, Handle event);
int synchronize_event(Handle event);
int query_event(Handle event);
int elapsed_ms(float* milliseconds, Handle first, Handle second);

int allocate_device(void** at, size_t bytes);
int free_device(void* at);
int allocate_host(void** at, size_t bytes);
int free_host(void* at);
int memory_info(size_t* free, size_t* total);
int copy(void* to, const void* from, size_t bytes, int kind, Handle stream);
int fill(void* at, int value, size_t bytes, Handle stream);

}  // namespace stand_in
