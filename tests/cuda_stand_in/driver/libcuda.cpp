// libcuda.so.1: modules, kernels and their launches.
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>

#include "api.h"
#include "blocks.h"
#include "errors.h"
#include "machine.h"
#include "memory.h"

namespace stand_in {
namespace {

struct Module;
struct Function {
  Module* module;
  const KernelEntry* kernel;
  size_t max_dynamic_shared = SHARED_DEFAULT;
};
struct Module {
  void* library;
  int file, device;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
std::set<Module*> modules;
std::set<Function*> functions;

// Bytes of a shared object in memory, which has no length of its own; 0 where it is none.
size_t image_bytes(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_machine != EM_X86_64) return 0;
  const auto* sections =
      reinterpret_cast<const Elf64_Shdr*>(static_cast<const char*>(image) + header->e_shoff);
  size_t end = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
  for (int n = 0; n < header->e_shnum; ++n) {
    const size_t last = sections[n].sh_offset + sections[n].sh_size;
    if (sections[n].sh_type != SHT_NOBITS && last > end) end = last;
  }
  return end;
}

std::string path_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

int load(const void* image, size_t bytes, Module* module) {
  module->file = memfd_create("cuda-stand-in-module", MFD_CLOEXEC);
  for (size_t at = 0; at < bytes;) {
    const ssize_t written = write(module->file, static_cast<const char*>(image) + at, bytes - at);
    if (written <= 0) return OUT_OF_MEMORY;
    at += written;
  }
  module->library = dlopen(path_of(module->file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module->library) {
    say(std::string("a module cannot be loaded: ") + dlerror());
    return INVALID_IMAGE;
  }
  const auto* arch = static_cast<const unsigned*>(dlsym(module->library, "stand_in_arch"));
  if (!arch) return INVALID_IMAGE;
  const unsigned own =
      (unsigned)capability();  // code runs within one major version, on later minors
  return *arch / 10 == own / 10 && *arch <= own ? OK : NO_BINARY_FOR_GPU;
}

void unload(Module* module) {
  if (module->library) dlclose(module->library);
  // The loader knows a library by the name with which it was opened: the number of the file may be
  // used again only where the library has truly gone.
  void* still =
      module->file < 0 ? nullptr : dlopen(path_of(module->file).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!still && module->file >= 0) close(module->file);
  delete module;
}

std::string text_of(const Index3& at) {
  return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) + ")";
}

// The arguments of a launch, kept from the call to the end.
struct Arguments {
  std::vector<std::vector<char>> values;

  Arguments(const KernelEntry& kernel, void** given) {
    for (unsigned n = 0; n < kernel.parameter_count; ++n) {
      const char* at = static_cast<const char*>(given[n]);
      values.emplace_back(at, at + kernel.parameter_bytes[n]);
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> found;
    for (auto& value : values) found.push_back(value.data());
    found.push_back(nullptr);
    return found;
  }
};

// The CPU would read memory of the host for a kernel; a device cannot.
bool has_host_pointer(const KernelEntry& kernel, const std::vector<void*>& arguments) {
  for (unsigned n = 0; n < kernel.parameter_count; ++n) {
    if (!kernel.parameter_is_pointer[n]) continue;
    void* at = *static_cast<void**>(arguments[n]);
    if (!at || is_device_address(at) || is_pinned(at)) continue;
    say(std::string(kernel.name) + ": argument " + std::to_string(n) + " is memory of the host");
    return true;
  }
  return false;
}

int run(int device, const Launch& launch) {
  const std::string name = launch.kernel->name;
  const std::string shape =
      name + "<<<" + text_of(launch.grid) + "," + text_of(launch.block) + ">>>";
  if (const int error = count_launch(device)) return error;
  show_memory(device);
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const Fault fault = run_blocks(launch);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (is_traced())
    trace(shape + " " +
          std::to_string((end.tv_sec - begin.tv_sec) * 1e3 + (end.tv_nsec - begin.tv_nsec) / 1e6) +
          " ms");
  if (fault.error) {
    char address[32];
    snprintf(address, sizeof address, "%#zx", (size_t)fault.address);
    say("error " + std::to_string(fault.error) + ": " + fault.why + " in " + shape + ", block " +
        text_of(fault.block) + ", thread " + text_of(fault.thread) + ", address " + address + ": " +
        describe_address(fault.address));
    return fault.error;
  }
  spend(device, fault.steps);
  const size_t overrun = find_overrun(device);
  if (!overrun) return OK;
  say(shape + " wrote beside an allocation of " + std::to_string(overrun) + " bytes");
  return ILLEGAL_ADDRESS;
}

size_t static_shared(const KernelEntry& kernel) {
  size_t bytes = 0;
  for (unsigned n = 0; n < kernel.shared_count; ++n) bytes += kernel.shared_bytes[n];
  return bytes;
}

// How many blocks a multiprocessor holds at once; 0 where not even one.
size_t blocks_each(const KernelEntry& kernel, size_t threads, size_t shared) {
  const size_t warps = (threads + WARP - 1) / WARP;
  size_t count = BLOCKS_SM;
  for (const size_t limit : {THREADS_SM / (warps * WARP), SHARED_SM / (shared + SHARED_RESERVED),
                             REGISTERS_SM / (kernel.registers * warps * WARP)})
    if (limit < count) count = limit;
  return count;
}

struct LaunchAttribute {  // CUlaunchAttribute
  int id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
    unsigned cluster[3];
  } value;
};
struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3], block[3], dynamic_shared;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
constexpr int COOPERATIVE = 2, CLUSTER = 4;

int check_limits(const Function& function, const LaunchConfig& config, bool is_cooperative) {
  const KernelEntry& kernel = *function.kernel;
  const unsigned *grid = config.grid, *block = config.block;
  const size_t threads = (size_t)block[0] * block[1] * block[2];
  const size_t shared = config.dynamic_shared + static_shared(kernel);
  if (!threads || threads > THREADS_BLOCK || block[2] > 64 || threads > kernel.max_threads)
    return INVALID_VALUE;
  if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 2147483647u || grid[1] > 65535 ||
      grid[2] > 65535)
    return INVALID_VALUE;
  const bool opted_in = function.max_dynamic_shared > SHARED_DEFAULT;
  if (config.dynamic_shared > function.max_dynamic_shared ||
      shared > (opted_in ? shared_opt_in() : SHARED_DEFAULT))
    return INVALID_VALUE;
  const size_t each = blocks_each(kernel, threads, shared);
  if (!each) {
    say(std::string(kernel.name) + ": " + std::to_string(kernel.registers) +
        " registers (estimated) for each of " + std::to_string(threads) +
        " threads are more than a multiprocessor has");
    return OUT_OF_RESOURCES;
  }
  const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
  return is_cooperative && blocks > each * multiprocessors() ? COOPERATIVE_TOO_LARGE : OK;
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

extern "C" {

int cuModuleLoadData(Handle* found, const void* image) {
  show_clock();
  Locked locked;
  if (const int error = standing_error()) return error;
  if (const int error = reject_unsafe_call()) return error;
  const size_t bytes = image_bytes(image);
  if (!bytes) return INVALID_IMAGE;
  Module* made = new Module{nullptr, -1, current_device(), {}};
  if (const int error = load(image, bytes, made)) {
    unload(made);
    return error;
  }
  modules.insert(made);
  *found = made;
  return OK;
}

int cuModuleUnload(Handle handle) {
  Locked locked;
  Module* module = static_cast<Module*>(handle);
  if (const int error = standing_error()) return error;
  if (!modules.count(module)) return INVALID_HANDLE;
  run_device(module->device);
  if (const int error = standing_error(module->device)) return error;
  modules.erase(module);
  for (const auto& [name, function] : module->functions) functions.erase(function.get());
  unload(module);
  return OK;
}

int cuModuleGetFunction(Handle* found, Handle handle, const char* name) {
  Locked locked;
  Module* module = static_cast<Module*>(handle);
  if (const int error = standing_error()) return error;
  if (!modules.count(module)) return INVALID_HANDLE;
  auto& function = module->functions[name];
  if (!function) {
    const auto* kernels =
        static_cast<const KernelEntry*>(dlsym(module->library, "stand_in_kernels"));
    const unsigned count =
        *static_cast<const unsigned*>(dlsym(module->library, "stand_in_kernel_count"));
    for (unsigned n = 0; n < count; ++n)
      if (!strcmp(kernels[n].name, name)) function.reset(new Function{module, kernels + n});
    if (!function) return NOT_FOUND;
    functions.insert(function.get());
  }
  *found = function.get();
  return OK;
}

int cuDeviceGetAttribute(int* found, int which, int device) {
  if (device < 0 || device >= device_count()) return INVALID_DEVICE;
  *found = attribute(which);
  return OK;
}

int cuFuncSetAttribute(Handle handle, int which, int value) {
  constexpr int MAX_DYNAMIC_SHARED = 8;
  Locked locked;
  Function* function = static_cast<Function*>(handle);
  if (const int error = standing_error()) return error;
  if (!functions.count(function)) return INVALID_HANDLE;
  if (which != MAX_DYNAMIC_SHARED) return OK;
  if (value < 0 || value + static_shared(*function->kernel) > shared_opt_in()) return INVALID_VALUE;
  if (setting("REFUSES_OPT_IN", 0)) return INVALID_VALUE;
  function->max_dynamic_shared = (size_t)value > SHARED_DEFAULT ? (size_t)value : SHARED_DEFAULT;
  return OK;
}

int cuLaunchKernelEx(const LaunchConfig* config, Handle handle, void** parameters, void** extra) {
  Locked locked;
  Function* function = static_cast<Function*>(handle);
  if (const int error = standing_error()) return error;
  if (!functions.count(function)) return INVALID_HANDLE;
  bool is_cooperative = false;
  for (unsigned n = 0; n < config->attribute_count; ++n) {
    const LaunchAttribute& attribute = config->attributes[n];
    if (attribute.id == COOPERATIVE) is_cooperative = attribute.value.cooperative != 0;
    if (attribute.id == CLUSTER && attribute.value.cluster[0] * attribute.value.cluster[1] > 1)
      return NOT_SUPPORTED;
  }
  if (extra) return INVALID_VALUE;
  if (const int error = check_limits(*function, *config, is_cooperative)) return error;
  auto arguments = std::make_shared<Arguments>(*function->kernel, parameters);
  const Index3 grid{config->grid[0], config->grid[1], config->grid[2]};
  const Index3 block{config->block[0], config->block[1], config->block[2]};
  const size_t dynamic_shared = config->dynamic_shared;
  const int device = function->module->device;
  return submit(config->stream, [=] {
    if (!functions.count(function)) {
      say("a launch of a kernel whose module was unloaded");
      return (int)ILLEGAL_ADDRESS;
    }
    std::vector<void*> pointers = arguments->pointers();
    if (has_host_pointer(*function->kernel, pointers)) return (int)ILLEGAL_ADDRESS;
    return run(device,
               {function->kernel, grid, block, dynamic_shared, is_cooperative, pointers.data()});
  });
}

int cuDeviceGetName(char* name, int bytes, int device) {
  if (device < 0 || device >= device_count()) return INVALID_DEVICE;
  snprintf(name, bytes, "%s", device_name().c_str());
  return OK;
}

int cuGetErrorName(int error, const char** name) {
  *name = driver_name(error);
  return OK;
}
int cuGetErrorString(int error, const char** text) {
  *text = description(error);
  return OK;
}
int cuTensorMapEncodeTiled(...) { return NOT_SUPPORTED; }
int cuInit(unsigned) { return device_count() ? OK : NO_DEVICE; }
int cuDeviceGetCount(int* count) {
  *count = device_count();
  return OK;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return OK;
}
}
