#include "machine.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "errors.h"

namespace stand_in {
namespace {

constexpr int DEFAULT_CAPABILITY = 90, DEFAULT_MULTIPROCESSORS = 4, DEFAULT_MEMORY_MB = 8192;

std::string text_setting(const char* name) {
  const char* value = getenv((std::string("NVIDIA_STAND_IN_") + name).c_str());
  return value ? value : "";
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = text.find(',', at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return parts;
}

// The devices by their UUID, in the order of the bus; a part of a device begins with MIG-.
std::vector<std::string> all_devices() {
  const std::string named = text_setting("UUIDS");
  return split(named.empty() ? "GPU-stand-in" : named);
}

// As the driver reads CUDA_VISIBLE_DEVICES: what follows the first name that does not exist, or
// comes twice, is not visible; and of parts of devices a process sees one.
std::vector<int> visible_devices() {
  const std::vector<std::string> all = all_devices();
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  std::vector<int> chosen;
  auto is_chosen = [&](int number) {
    for (int other : chosen)
      if (other == number) return true;
    return false;
  };
  if (!visible) {
    for (size_t n = 0; n < all.size(); ++n)
      if (chosen.empty() || all[n].compare(0, 4, "MIG-")) chosen.push_back((int)n);
    return chosen;
  }
  for (const std::string& name : split(visible)) {
    int found = -1;
    const bool is_number =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    for (size_t n = 0; n < all.size(); ++n)
      if (is_number ? (size_t)atoi(name.c_str()) == n
                    : !name.empty() && !all[n].compare(0, name.size(), name))
        found = (int)n;
    if (found < 0 || is_chosen(found)) break;
    chosen.push_back(found);
    if (!all[found].compare(0, 4, "MIG-")) break;
  }
  return chosen;
}

// Read once: the driver, too, looks at the variable when it is initialized.
const std::vector<int>& visible() {
  static const std::vector<int> devices = visible_devices();
  return devices;
}

// Counters that all processes share, in the file that NVIDIA_STAND_IN_COUNTERS names: launches,
// the error of a device that fails (999: it is lost), and the launches of each device.
std::atomic<long>* launch_counter() {
  static std::atomic<long>* const counter = [] {
    const std::string path = text_setting("COUNTERS");
    const int file = path.empty() ? -1 : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, 4096)) return new std::atomic<long>(0);
    void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? new std::atomic<long>(0) : static_cast<std::atomic<long>*>(at);
  }();
  return counter;
}

}  // namespace

long setting(const char* name, long otherwise) {
  const std::string value = text_setting(name);
  return value.empty() ? otherwise : atol(value.c_str());
}

int device_count() { return (int)visible().size(); }
int capability() { return (int)setting("CAPABILITY", DEFAULT_CAPABILITY); }
unsigned multiprocessors() { return (unsigned)setting("MULTIPROCESSORS", DEFAULT_MULTIPROCESSORS); }
size_t device_memory() { return (size_t)setting("MEMORY_MB", DEFAULT_MEMORY_MB) << 20; }

size_t shared_opt_in() { return (size_t)setting("SHARED_OPT_IN_KB", 227) * KILOBYTE; }

unsigned cores() {
  cpu_set_t set;
  const long given = setting("CORES", 0);
  if (given > 0) return (unsigned)given;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

long pace() {
  static const long given = setting("PACE", 0);
  return given;
}

std::string device_name() {
  const std::string name = text_setting("NAME");
  return name.empty() ? "NVIDIA stand-in" : name;
}

int attribute(int which) {
  switch (which) {  // numbers of cudaDeviceAttr
    case 1:
    case 2:
    case 3:
      return (int)THREADS_BLOCK;
    case 4:
      return 64;
    case 5:
      return 2147483647;
    case 6:
    case 7:
      return 65535;
    case 8:
      return (int)SHARED_DEFAULT;
    case 9:
      return 65536;  // constant memory
    case 10:
      return (int)WARP;
    case 12:
    case 82:
      return (int)REGISTERS_SM;
    case 13:
      return 1980000;  // kHz
    case 16:
      return (int)multiprocessors();
    case 36:
      return 2619000;  // kHz of the memory
    case 37:
      return 5120;  // bits of its bus
    case 38:
      return 50 << 20;  // bytes of the level 2 cache
    case 39:
      return (int)THREADS_SM;
    case 75:
      return capability() / 10;
    case 76:
      return capability() % 10;
    case 81:
      return (int)SHARED_SM;
    case 95:
      return 1;  // cooperative launches
    case 97:
      return (int)shared_opt_in();
    case 106:
      return (int)BLOCKS_SM;
    default:
      return 0;
  }
}

bool can_fail(int device) {
  return setting("LOST_AFTER", -1) >= 0 && visible()[device] == setting("LOST_DEVICE", 0);
}

bool is_lost(int device) { return can_fail(device) && launch_counter()[1] == UNKNOWN; }

int count_launch(int device) {
  const long launches = ++launch_counter()[0];
  ++launch_counter()[2 + visible()[device]];
  if (!can_fail(device)) return OK;
  if (launches <= setting("LOST_AFTER", -1)) return (int)launch_counter()[1];
  if (launch_counter()[1].exchange(UNKNOWN) == OK) {
    say("the device is lost");
    const std::string marker = text_setting("LOST_MARKER");  // for NVML, which tells of it too
    const int file =
        marker.empty() ? -1 : open(marker.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
  }
  return UNKNOWN;
}

void say(const std::string& what) { fprintf(stderr, "CUDA stand-in: %s\n", what.c_str()); }
bool is_traced() {
  static const bool is = setting("TRACE", 0) != 0;
  return is;
}
void trace(const std::string& what) {
  if (is_traced()) say(what);
}

}  // namespace stand_in
