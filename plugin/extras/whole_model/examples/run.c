/* Runs a native artifact on zeros: gcc run.c libmodel.so -Wl,-rpath,'$ORIGIN' -o run */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  model* instance;
  if (model_create(NULL, &instance)) return fprintf(stderr, "%s\n", model_error()), 1;
  int32_t given = model_input_count(), made = model_output_count();
  void** inputs = calloc((size_t)given + 1, sizeof *inputs);
  void** outputs = calloc((size_t)made + 1, sizeof *outputs);
  for (int32_t i = 0; i < given; ++i) inputs[i] = calloc(1, (size_t)model_input(i)->size_bytes);
  for (int32_t i = 0; i < made; ++i) outputs[i] = calloc(1, (size_t)model_output(i)->size_bytes);
  if (model_run(instance, (const void* const*)inputs, outputs)) return fprintf(stderr, "%s\n", model_error()), 1;
  for (int32_t i = 0; i < made; ++i)
    printf("%s %s %lld\n", model_output(i)->name, model_output(i)->dtype, (long long)model_output(i)->size_bytes);
  printf("%.6g\n", ((float*)outputs[0])[0]);
  for (int32_t i = 0; i < given; ++i) free(inputs[i]);
  for (int32_t i = 0; i < made; ++i) free(outputs[i]);
  free(inputs);
  free(outputs);
  model_destroy(instance);
  return 0;
}
