#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>
#include <penstock/source/stream.hpp>

#include "src/source/stream/arrived.hpp"

namespace penstock {

struct RecordWriter::State {
  const source::Packing& packing;
  const std::string& name;  ///< of the generator
  std::vector<std::vector<std::byte>> memory{packing.fields().size()};
  std::vector<ConstTensorView> record{};  ///< a null view where nothing was written yet
  std::vector<bool> written{};
};

namespace {

// vector::data() may be null where a tensor has no elements.
std::byte* data_of(std::vector<std::byte>& bytes, std::size_t size) {
  bytes.assign(size + 1, std::byte{});
  return bytes.data();
}

}  // namespace

TensorView RecordWriter::field(std::string_view name, const Shape& shape) {
  const auto fields = state_.packing.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name != name) continue;
    const TensorView probe(nullptr, fields[i].dtype, shape);
    const std::size_t size = state_.packing.check(i, probe);
    const TensorView view(data_of(state_.memory[i], size), fields[i].dtype, shape);
    state_.record[i] = view;
    state_.written[i] = true;
    return view;
  }
  std::string names;
  for (const FieldSpec& spec : fields) names += (names.empty() ? "'" : ", '") + spec.name + "'";
  throw std::invalid_argument(
      fmt::format("{}: there is no field '{}', expected one of {}", state_.name, name, names));
}

TensorView RecordWriter::field(std::string_view name) {
  for (const FieldSpec& spec : state_.packing.fields())
    if (spec.name == name) return field(name, spec.shape);
  return field(name, Shape());  // which says that there is none
}

void RecordWriter::set(std::string_view name, const ConstTensorView& value) {
  for (std::size_t i = 0; i < state_.packing.fields().size(); ++i)
    if (state_.packing.fields()[i].name == name) (void)state_.packing.check(i, value);
  const TensorView view = field(name, value.shape());
  if (view.byte_size() != 0) std::memcpy(view.raw(), value.raw(), view.byte_size());
}

/// No other class makes a RecordWriter.
class GeneratorAccess {
 public:
  GeneratorAccess(const source::Packing& packing, const std::string& name)
      : state_{packing, name} {}

  /// The function's next record; none when it says that there are no more.
  std::optional<source::PackedRecord> next(const GeneratorFunction& function) {
    const auto fields = state_.packing.fields();
    state_.record.assign(fields.size(), {});
    state_.written.assign(fields.size(), false);
    RecordWriter writer(state_);
    if (!function(writer)) return std::nullopt;
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (!state_.written[i])
        throw std::invalid_argument(
            fmt::format("{}: expected every field of a record to be written, found '{}' left out: "
                        "write it with set() or field(), or return false where there is no record",
                        state_.name, fields[i].name));
    return state_.packing.pack(state_.record, state_.packing.size_of_record(state_.record));
  }

 private:
  RecordWriter::State state_;
};

namespace {

class Generator final : public Stream {
 public:
  Generator(std::vector<FieldSpec> fields, GeneratorFunction function, const std::string& name)
      : name_(fmt::format("generator '{}'", name)),
        packing_(std::move(fields), name_),
        function_(std::move(function)),
        writer_(packing_, name_) {
    if (!function_)
      throw std::invalid_argument(name_ + ": expected a function that makes records, found none");
  }

  std::span<const FieldSpec> fields() const noexcept override { return packing_.fields(); }

  std::uint64_t wait(std::uint64_t wanted, std::stop_token stop) override {
    const std::lock_guard alone(running_);
    while (!stop.stop_requested() && needs(wanted)) make_one();
    const std::lock_guard lock(mutex_);
    return arrived_.count();
  }

  Result<void> read(std::uint64_t number, Record& record) override {
    auto taken = take(number);
    if (!taken) return std::move(taken.fault());
    return packing_.unpack(*taken, record);
  }

  void discard(std::uint64_t number) override {
    if (auto taken = take(number); !taken) throw std::logic_error(taken.fault().reason);
  }

  bool closed() const override {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  std::exception_ptr cause() const override {
    const std::lock_guard lock(mutex_);
    return cause_;
  }
  void detach() noexcept override {
    std::unordered_map<std::uint64_t, source::PackedRecord> unread;  // freed without the lock
    const std::lock_guard lock(mutex_);
    unread = arrived_.clear();
    closed_ = true;
  }

  std::string location(std::uint64_t number) const override {
    return fmt::format("{} record {}", name_, number);
  }
  std::string fingerprint() const override {
    std::string layout;
    for (const FieldSpec& field : fields()) layout += field.to_string() + '\n';
    return fmt::format("{}({})", name_, hash_text(layout));
  }

 private:
  [[nodiscard]] bool needs(std::uint64_t wanted) const {
    const std::lock_guard lock(mutex_);
    return !closed_ && arrived_.count() < wanted;
  }

  void make_one() {
    std::optional<source::PackedRecord> record;
    std::exception_ptr thrown;
    try {
      record = writer_.next(function_);
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (closed_) return;  // there is no reader any more
    if (record) {
      arrived_.add(*std::move(record));
    } else {
      closed_ = true;
      cause_ = thrown;
    }
  }

  Result<source::PackedRecord> take(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return arrived_.take(number, name_);
  }

  std::string name_;
  source::Packing packing_;
  GeneratorFunction function_;
  mutable std::mutex running_;
  GeneratorAccess writer_;

  mutable std::mutex mutex_;
  source::Arrived arrived_;
  bool closed_ = false;
  std::exception_ptr cause_;
};

}  // namespace

StreamPtr source::generator(std::vector<FieldSpec> fields, GeneratorFunction next,
                            std::string name) {
  return std::make_shared<Generator>(std::move(fields), std::move(next), name);
}

}  // namespace penstock
