// Error codes, the same for the driver's and the runtime's functions, and their names.
#pragma once

namespace stand_in {

enum Error : int {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  NO_BINARY_FOR_GPU = 209,
  INVALID_HANDLE = 400,
  ILLEGAL_STATE = 401,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  OUT_OF_RESOURCES = 701,
  LAUNCH_TIMEOUT = 702,
  MISALIGNED_ADDRESS = 716,
  LAUNCH_FAILED = 719,
  COOPERATIVE_TOO_LARGE = 720,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_MERGE = 902,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_UNJOINED = 904,
  CAPTURE_IMPLICIT = 906,
  CAPTURED_EVENT = 907,
  CAPTURE_WRONG_THREAD = 908,
  UNKNOWN = 999,
};

const char* runtime_name(int error);
const char* driver_name(int error);
const char* description(int error);

}  // namespace stand_in
