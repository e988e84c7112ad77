// Runs a native artifact on zeros: g++ -std=c++17 run.cpp libmodel.so -Wl,-rpath,'$ORIGIN' -o run
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "model.h"

class Model {
 public:
  Model() {
    model* made = nullptr;
    if (model_create(nullptr, &made)) throw std::runtime_error(model_error());
    instance_.reset(made);
  }

  std::vector<std::vector<char>> run(const std::vector<std::vector<char>>& given) {
    std::vector<const void*> inputs;
    for (const auto& each : given) inputs.push_back(each.data());
    std::vector<std::vector<char>> made;
    for (int i = 0; i < model_output_count(); ++i) made.emplace_back(model_output(i)->size_bytes);
    std::vector<void*> outputs;
    for (auto& each : made) outputs.push_back(each.data());
    if (model_run(instance_.get(), inputs.data(), outputs.data())) throw std::runtime_error(model_error());
    return made;
  }

 private:
  struct Destroy {
    void operator()(model* instance) const { model_destroy(instance); }
  };
  std::unique_ptr<model, Destroy> instance_;
};

int main() {
  std::vector<std::vector<char>> inputs;
  for (int i = 0; i < model_input_count(); ++i) inputs.emplace_back(model_input(i)->size_bytes);
  const auto outputs = Model().run(inputs);
  for (int i = 0; i < model_output_count(); ++i)
    std::printf("%s %s %zu\n", model_output(i)->name, model_output(i)->dtype, outputs[i].size());
  std::printf("%.6g\n", reinterpret_cast<const float*>(outputs[0].data())[0]);
}
