// How the library calls a kernel: the table that the compiler writes behind a text.
#pragma once
#include "language.h"

namespace stand_in {

template <class Kernel>
struct Signature;
template <class... Parameters>
struct Signature<void (*)(Parameters...)> {
  static constexpr unsigned count = sizeof...(Parameters);
  static constexpr unsigned bytes[count + 1] = {sizeof(Parameters)..., 0};
  static constexpr unsigned char is_pointer[count + 1] = {std::is_pointer<Parameters>::value..., 0};
};

template <class... Parameters, size_t... N>
inline void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<N...>) {
  kernel(*static_cast<std::remove_reference_t<Parameters>*>(arguments[N])...);
}
template <class... Parameters>
inline void call(void (*kernel)(Parameters...), void** arguments) {
  call(kernel, arguments, std::index_sequence_for<Parameters...>());
}

}  // namespace stand_in

#define STAND_IN_CALL(kernel) \
  static void stand_in_call_##kernel(void** arguments) { stand_in::call(&kernel, arguments); }
#define STAND_IN_ENTRY(kernel, waits, max_threads, registers, shared_count, shared) \
  {#kernel,                                                                         \
   stand_in_call_##kernel,                                                          \
   stand_in::Signature<decltype(&kernel)>::count,                                   \
   stand_in::Signature<decltype(&kernel)>::bytes,                                   \
   stand_in::Signature<decltype(&kernel)>::is_pointer,                              \
   waits,                                                                           \
   max_threads,                                                                     \
   registers,                                                                       \
   shared_count,                                                                    \
   shared}
