"""What a native artifact is called: it is loaded by its file's name."""

NATIVE_OBJECT = "libmodel.so"
HEADER = "model.h"
