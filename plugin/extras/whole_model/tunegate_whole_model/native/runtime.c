/* The functions of model.h. The generated file has this one after its tables: INPUTS, OUTPUTS,
   BUFFERS, CALLS, WEIGHT_BYTES, ARENA_BYTES. */
struct model {
  char *arena, *weights;
  tensor buffers[BUFFER_COUNT];
};

/* A kernel, or the blocks of one from the first to before `stop`. */
static int call(model* instance, int number, int64_t first, int64_t stop) {
  any arguments[MOST_ARGUMENTS + 2], result = {0, 0, NULL};
  int count = CALLS[number].count;
  for (int j = 0; j < count; ++j) {
    any tensor_argument = {7, 0, &instance->buffers[CALLS[number].buffers + j]};
    arguments[j] = tensor_argument;
  }
  if (CALLS[number].has_share) {
    any begin = {1, 0, (void*)(intptr_t)first}, end = {1, 0, (void*)(intptr_t)stop};
    arguments[count++] = begin, arguments[count++] = end;
  }
  return CALLS[number].kernel(NULL, arguments, count, &result);
}

static int compute(model* instance);

int32_t model_input_count(void) { return INPUT_COUNT; }
int32_t model_output_count(void) { return OUTPUT_COUNT; }
const model_tensor* model_input(int32_t i) { return i >= 0 && i < INPUT_COUNT ? &INPUTS[i] : NULL; }
const model_tensor* model_output(int32_t i) { return i >= 0 && i < OUTPUT_COUNT ? &OUTPUTS[i] : NULL; }

static int read_weights(const char* path, char* into) {
  FILE* file = fopen(path, "rb");
  if (!file) return failed("no such file of weights: ", path);
  size_t read = fread(into, 1, WEIGHT_BYTES, file);
  int more = fgetc(file) != EOF;
  fclose(file);
  return read == WEIGHT_BYTES && !more ? 0 : failed("a file of weights of another model: ", path);
}

static char* base(const model* instance, int place) {
  if (place == WEIGHT) return instance->weights ? instance->weights : (char*)weight_bytes;
  return place == ARENA ? instance->arena : NULL;
}

int model_create(const char* weights, model** created) {
  *created = NULL;
  model* instance = calloc(1, sizeof *instance);
  if (!instance) return failed("out of memory", "");
  instance->arena = aligned_alloc(64, ARENA_BYTES);
  if (weights) instance->weights = aligned_alloc(64, (WEIGHT_BYTES + 127) / 64 * 64);
  if (!instance->arena || (weights && !instance->weights)) {
    model_destroy(instance);
    return failed("out of memory", "");
  }
  if (weights && read_weights(weights, instance->weights)) {
    model_destroy(instance);
    return -1;
  }
  for (int i = 0; i < BUFFER_COUNT; ++i) {
    instance->buffers[i] = BUFFERS[i].view;
    if (BUFFERS[i].place != INPUT) instance->buffers[i].data = base(instance, BUFFERS[i].place) + BUFFERS[i].at;
  }
  *created = instance;
  return 0;
}

void model_destroy(model* instance) {
  if (!instance) return;
  free(instance->arena);
  free(instance->weights);
  free(instance);
}

int model_run(model* instance, const void* const* inputs, void* const* outputs) {
  const void* given[INPUT_COUNT + 1];
  for (int i = 0; i < INPUT_COUNT; ++i) {
    given[i] = inputs[i];
    if ((uintptr_t)inputs[i] % 64)
      given[i] = memcpy(instance->arena + INPUT_COPIES[i], inputs[i], (size_t)INPUTS[i].size_bytes);
  }
  for (int i = 0; i < BUFFER_COUNT; ++i)
    if (BUFFERS[i].place == INPUT) instance->buffers[i].data = (void*)given[BUFFERS[i].at];
  if (compute(instance)) return -1;
  for (int i = 0; i < OUTPUT_COUNT; ++i) {
    const char* from = OUTPUT_PLACES[i].place == INPUT ? given[OUTPUT_PLACES[i].at]
                       : base(instance, OUTPUT_PLACES[i].place) + OUTPUT_PLACES[i].at;
    memcpy(outputs[i], from, (size_t)OUTPUTS[i].size_bytes);
  }
  return 0;
}
