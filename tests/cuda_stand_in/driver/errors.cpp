#include "errors.h"

namespace stand_in {
namespace {

struct Description {
  int error;
  const char *runtime, *driver, *text;
};

const Description DESCRIPTIONS[] = {
    {OK, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED",
     "initialization error"},
    {NO_DEVICE, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE",
     "invalid device ordinal"},
    {INVALID_IMAGE, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {NO_BINARY_FOR_GPU, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE",
     "invalid resource handle"},
    {ILLEGAL_STATE, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {NOT_FOUND, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {OUT_OF_RESOURCES, "cudaErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {LAUNCH_TIMEOUT, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out and was terminated"},
    {MISALIGNED_ADDRESS, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS",
     "misaligned address"},
    {LAUNCH_FAILED, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED",
     "unspecified launch failure"},
    {COOPERATIVE_TOO_LARGE, "cudaErrorCooperativeLaunchTooLarge",
     "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {NOT_SUPPORTED, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported",
     "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated",
     "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CAPTURE_MERGE, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {CAPTURE_UNJOINED, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CAPTURED_EVENT, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CAPTURE_WRONG_THREAD, "cudaErrorStreamCaptureWrongThread",
     "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {UNKNOWN, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Description& description_of(int error) {
  const Description* last = DESCRIPTIONS;
  for (const Description& candidate : DESCRIPTIONS) {
    if (candidate.error == error) return candidate;
    last = &candidate;
  }
  return *last;
}

}  // namespace

const char* runtime_name(int error) { return description_of(error).runtime; }
const char* driver_name(int error) { return description_of(error).driver; }
const char* description(int error) { return description_of(error).text; }

}  // namespace stand_in
