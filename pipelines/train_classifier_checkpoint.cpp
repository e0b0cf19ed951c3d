#include "train_classifier_checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace classifier {

namespace ps = penstock;

namespace {

constexpr std::string_view kFormat = "penstock-checkpoint 2";

std::string digest_of(std::span<const std::byte> bytes) {
  ps::RowHasher hasher(0, 0, {});
  hasher.add(bytes);
  return hasher.finish().to_string();
}

template <class T>
T field(const nlohmann::json& head, const char* name, const std::string& path) {
  const auto found = head.find(name);
  const bool is_right =
      found != head.end() &&
      (std::is_same_v<T, std::string> ? found->is_string() : found->is_number_unsigned());
  if (!is_right)
    throw ps::Error(fmt::format("the checkpoint '{}' is damaged: its field '{}'", path, name));
  return found->get<T>();
}

}  // namespace

// Its schema is in docs/sync.md.
void Checkpoint::write(const std::string& path) const {
  std::string numbers;
  for (const auto* values : {&weights.parameters, &weights.velocity})
    numbers.append(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(float));
  const nlohmann::json head{{"format", kFormat},
                            {"parameters", weights.parameters.size()},
                            {"digest", digest_of(std::as_bytes(std::span(numbers)))},
                            {"loader", loader.to_json()}};
  ps::write_file(path, head.dump() + '\n' + numbers);
}

Checkpoint Checkpoint::from_bytes(std::string_view bytes, const std::string& path) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const nlohmann::json head = nlohmann::json::parse(line, nullptr, false);
  if (!head.is_object() || !head.contains("format"))
    throw ps::Error(fmt::format("'{}' is not a checkpoint of this program", path));
  if (const auto format = field<std::string>(head, "format", path); format != kFormat)
    throw ps::Error(
        fmt::format("the checkpoint '{}' has the format '{}', and this program reads '{}'", path,
                    format, kFormat));
  const auto parameters = field<std::uint64_t>(head, "parameters", path);
  const std::string_view rest = bytes.substr(std::min(bytes.size(), line.size() + 1));
  const std::uint64_t numbers = rest.size();
  constexpr std::uint64_t kEach = 2 * sizeof(float);
  if (numbers % kEach != 0 || numbers / kEach != parameters)
    throw ps::Error(
        fmt::format("the checkpoint '{}' is damaged: its head says {} parameters, of 8 bytes each, "
                    "and {} bytes follow",
                    path, parameters, numbers));
  Checkpoint checkpoint;
  std::vector<float> values(static_cast<std::size_t>(2 * parameters));
  std::memcpy(values.data(), rest.data(), rest.size());
  if (digest_of(std::as_bytes(std::span(values))) != field<std::string>(head, "digest", path))
    throw ps::Error(fmt::format(
        "the checkpoint '{}' is damaged: its numbers are not those that its digest is of", path));
  checkpoint.loader = ps::LoaderState::from_json(field<std::string>(head, "loader", path));
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(parameters);
  checkpoint.weights.parameters.assign(values.begin(), half);
  checkpoint.weights.velocity.assign(half, values.end());
  return checkpoint;
}

}  // namespace classifier
