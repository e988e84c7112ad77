/* A compiled model. Needs nothing but this file and the shared object beside it. */
#ifndef TUNEGATE_MODEL_H
#define TUNEGATE_MODEL_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct model model;
typedef struct {
  const char* name;
  const char* dtype; /* as NumPy writes it: float32, int64, ... */
  int32_t rank;
  const int64_t* shape;
  int64_t size_bytes;
} model_tensor;

int32_t model_input_count(void);
int32_t model_output_count(void);
const model_tensor* model_input(int32_t index);  /* NULL where there is none */
const model_tensor* model_output(int32_t index);

/* Reads the weights: from `weights`, or from the object itself where it is NULL.
   Returns 0, and an instance that one thread at a time may run. */
int model_create(const char* weights, model** created);
/* Inputs and outputs are dense arrays in the order of the metadata. Returns 0 when it has run. */
int model_run(model* instance, const void* const* inputs, void* const* outputs);
void model_destroy(model* instance);
/* What the last call that failed in this thread says. */
const char* model_error(void);

#ifdef __cplusplus
}
#endif
#endif
