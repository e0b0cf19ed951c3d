// A source whose records say who they are, and may be bad or slow on request.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

namespace penstock::testing_support {

/// Record n is the field "number" u64 [2]: n and n * n.
class FakeSource : public Source {
 public:
  explicit FakeSource(std::uint64_t size) : size_(size) {}

  std::set<std::uint64_t> bad;                        ///< a Fault
  std::function<void(std::uint64_t number)> on_read;  ///< may sleep or throw
  std::string name = "fake";

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(1);
    if (on_read) on_read(number);
    if (bad.contains(number)) return Fault{.reason = "made bad", .offset = 5};
    const std::uint64_t values[2] = {number, number * number};
    const std::span<std::byte> bytes = *record.allocate(sizeof values);
    std::memcpy(bytes.data(), values, sizeof values);
    record[0] = ConstTensorView(bytes.data(), DType::u64, {2});
    record.add_bytes_read(sizeof values);
    return {};
  }
  /// Of 1, 6, 2, 7, 3, 8, 4, 9, 5, 1, … records.
  [[nodiscard]] std::vector<std::uint64_t> chunks() const override {
    std::vector<std::uint64_t> begins;
    for (std::uint64_t begin = 0, k = 0; begin < size_; begin += 1 + k++ * 5 % 9)
      begins.push_back(begin);
    return begins;
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return name + "/" + std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override {
    return name + ":" + std::to_string(size_);
  }
  [[nodiscard]] std::optional<Description> description() const override {
    return Description{.name = "fake", .options = "{\"size\": " + std::to_string(size_) + "}"};
  }

 private:
  std::uint64_t size_;
  std::vector<FieldSpec> fields_{{"number", DType::u64, {2}}};
};

inline std::shared_ptr<FakeSource> fake(std::uint64_t size) {
  return std::make_shared<FakeSource>(size);
}

/// Knows what fake() makes, too.
inline Registry fake_registry() {
  Registry registry;
  registry.add_source("fake", [](std::string_view options) -> SourcePtr {
    return fake(std::stoull(std::string(options.substr(options.find(':') + 1))));
  });
  return registry;
}

/// The plan as another process would make it, of its text.
inline Dataset through_json(const Dataset& dataset) {
  const Registry registry = fake_registry();
  return Dataset::from_json(dataset.to_json({.registry = registry}), {.registry = registry});
}

/// One delivered step, as plain values.
struct Seen {
  std::uint64_t step = 0;
  std::uint32_t epoch = 0;
  std::vector<SampleId> samples;
  std::vector<std::uint64_t> numbers;  ///< field "number" of every row, padding included
  std::vector<std::uint64_t> rows;     ///< per part
  Digest digest;

  friend bool operator==(const Seen&, const Seen&) = default;
};

inline Seen see(const Step& step) {
  Seen seen{.step = step.number(),
            .epoch = step.epoch(),
            .samples = {step.samples().begin(), step.samples().end()},
            .numbers = {},
            .rows = {},
            .digest = step.digest()};
  for (const DeviceBatch& part : step) {
    seen.rows.push_back(part.size());
    const auto* values = part["number"].data<std::uint64_t>();
    for (std::uint64_t row = 0; row < part.size(); ++row) seen.numbers.push_back(values[2 * row]);
  }
  return seen;
}

/// Everything that is left, at most `limit` steps.
inline std::vector<Seen> drain(Loader& loader, std::size_t limit = SIZE_MAX) {
  std::vector<Seen> all;
  while (all.size() < limit) {
    const auto step = loader.next();
    if (!step) break;
    all.push_back(see(*step));
  }
  return all;
}

inline std::vector<std::uint64_t> numbers_of(const std::vector<Seen>& steps) {
  std::vector<std::uint64_t> numbers;
  for (const Seen& step : steps)
    for (const SampleId& id : step.samples) numbers.push_back(id.number);
  return numbers;
}

}  // namespace penstock::testing_support
