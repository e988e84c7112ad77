"""The file name of a native artifact, which it is loaded by."""

NATIVE_OBJECT = "libmodel.so"
HEADER = "model.h"
