#include "train_classifier_checkpoint.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace classifier {

namespace ps = penstock;

// One line of JSON, then the numbers as they lie in memory.
void Checkpoint::write(const std::string& path) const {
  const std::string part = path + ".part";
  const nlohmann::json head{{"format", "penstock-checkpoint 1"},
                            {"parameters", weights.parameters.size()},
                            {"loader", loader.to_json()}};
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << head.dump() << '\n';
  for (const auto* values : {&weights.parameters, &weights.velocity})
    file.write(reinterpret_cast<const char*>(values->data()),
               static_cast<std::streamsize>(values->size() * sizeof(float)));
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0)
    throw ps::Error(fmt::format("the checkpoint '{}' cannot be written", path));
}

Checkpoint Checkpoint::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ps::Error(fmt::format("the checkpoint '{}' cannot be read", path));
  std::string line;
  std::getline(file, line);
  const nlohmann::json head = nlohmann::json::parse(line, nullptr, false);
  if (!head.is_object() || head.value("format", "") != "penstock-checkpoint 1")
    throw ps::Error(fmt::format("'{}' is not a checkpoint of this program", path));
  Checkpoint checkpoint;
  checkpoint.loader = ps::LoaderState::from_json(head.at("loader").get<std::string>());
  for (auto* values : {&checkpoint.weights.parameters, &checkpoint.weights.velocity}) {
    values->resize(head.at("parameters").get<std::size_t>());
    file.read(reinterpret_cast<char*>(values->data()),
              static_cast<std::streamsize>(values->size() * sizeof(float)));
  }
  if (!file) throw ps::Error(fmt::format("the checkpoint '{}' is truncated", path));
  return checkpoint;
}

}  // namespace classifier
