// Stacks for the threads of a block. They take turns on one thread of the system, and change only
// where one waits for others.
#pragma once
#include <stddef.h>

namespace stand_in {

// Saves where this stack stands in `*saved` and goes on where `other` stands.
extern "C" void stand_in_switch_stack(void** saved, void* other);

class Stacks {
 public:
  ~Stacks();
  // A new stack with that number, which begins with `entry`; what it stands for switch_stack.
  void* fresh(unsigned number, void (*entry)());
  void reserve(unsigned count);

 private:
  char* base_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace stand_in
