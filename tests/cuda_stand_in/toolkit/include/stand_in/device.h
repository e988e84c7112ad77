// All that the text of a kernel sees. Precompiled once: a text is then compiled in half a second.
#pragma once
#include "arithmetic.h"
#include "half.h"
#include "kernel_table.h"
#include "language.h"
#include "tensor_cores.h"
#include "threads.h"
