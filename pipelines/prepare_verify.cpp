#include "prepare_verify.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include "prepare_input.hpp"
#include "prepare_progress.hpp"
#include "prepare_shard.hpp"

namespace prepare {
namespace {

namespace fs = std::filesystem;
namespace ps = penstock;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "penstock-prepare.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw ps::Error(
          fmt::format("no folder can be made in {}: {}; --verify needs room for a "
                      "shard there, or where $TMPDIR says",
                      fs::temp_directory_path().string(), std::strerror(errno)));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

// The first byte in which they differ; none where they do not.
std::optional<std::uint64_t> first_difference(const fs::path& one, const fs::path& other) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  std::ifstream left(one, std::ios::binary);
  std::ifstream right(other, std::ios::binary);
  // Two files that cannot be read are not the same.
  const auto require = [](const std::ifstream& file, const fs::path& path) {
    if (!file.is_open() || file.bad())
      throw ps::Error(fmt::format("'{}' cannot be read: {}", path.string(), std::strerror(errno)));
  };
  std::vector<char> a(kPart);
  std::vector<char> b(kPart);
  for (std::uint64_t at = 0;;) {
    left.read(a.data(), kPart);
    right.read(b.data(), kPart);
    require(left, one);
    require(right, other);
    const auto from_left = static_cast<std::size_t>(left.gcount());
    const auto from_right = static_cast<std::size_t>(right.gcount());
    const std::size_t both = std::min(from_left, from_right);
    const auto differ =
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(both), b.begin());
    const auto same = static_cast<std::size_t>(differ.first - a.begin());
    if (same < both || from_left != from_right) return at + same;
    if (both == 0) return std::nullopt;
    at += both;
  }
}

// An index is looked up by what is in an image: order does not count.
class Wanted final : public ps::JpegIndexStore {
 public:
  [[nodiscard]] std::shared_ptr<const ps::JpegIndex> find(const ps::JpegKey&) const override {
    return nullptr;
  }
  void put(const ps::JpegKey& key, ps::JpegIndex index) override {
    wanted_.emplace_back(key, index.to_bytes());
  }
  [[nodiscard]] std::size_t size() const override { return wanted_.size(); }
  [[nodiscard]] std::size_t bytes() const override { return 0; }
  [[nodiscard]] std::uint64_t missing_in(const ps::JpegIndexStore& found) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(wanted_, [&](const auto& one) {
      const auto index = found.find(one.first);
      return index == nullptr || index->to_bytes() != one.second;
    }));
  }

 private:
  std::vector<std::pair<ps::JpegKey, std::vector<std::byte>>> wanted_;
};

// What is wrong with a shard's index; empty: nothing.
std::string index_trouble(const fs::path& path, const Wanted& wanted) {
  ps::MemoryJpegIndex found;
  try {
    (void)found.load(path);
  } catch (const ps::Error& error) {
    return error.what();
  }
  const std::uint64_t missing = wanted.missing_in(found);
  return missing == 0
             ? ""
             : fmt::format("{} of its {} images are missing or differ", missing, wanted.size());
}

}  // namespace

int verify(const Options& options, const programs::Output& output) {
  const Input input(options);
  const Progress progress(options, input, output);
  const std::uint64_t total = input.size();
  const std::uint64_t shards = (total + options.shard_samples - 1) / options.shard_samples;
  const TemporaryFolder again;
  const auto threads = static_cast<std::size_t>(options.threads);
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(options.threads);
  std::string differences;
  const auto differs = [&](const fs::path& file, const std::string& how) {
    differences += fmt::format("'{}': {}\n", file.string(), how);
  };
  {
    ProgressLine line(options, output, total, 0);
    for (std::uint64_t number = 0; number < progress.shards().size(); ++number) {
      const fs::path path = shard_path(options, number);
      const fs::path made = again.path() / path.filename();
      const std::uint64_t first = number * options.shard_samples;
      Wanted wanted;
      ShardWriter shard(made);
      (void)arena.execute([&] {
        return write_shard(options, input, first, std::min(first + options.shard_samples, total),
                           &shard, wanted, line);
      });
      shard.finish();
      std::error_code missing;
      if (!fs::is_regular_file(path, missing))
        differs(path, "it is not there");
      else if (const auto at = first_difference(path, made))
        differs(path, fmt::format("differs from byte {} on, in {}", *at, shard.member_at(*at)));
      const fs::path index = fs::path(path).replace_extension(".jpegindex");
      if (const std::string trouble = index_trouble(index, wanted); !trouble.empty())
        differs(index, trouble);
      fs::remove(made);
    }
  }
  if (progress.shards().size() < shards)
    differs(options.output, fmt::format("{} of {} shards were written: start the run again, and it "
                                        "goes on",
                                        progress.shards().size(), shards));
  if (differences.empty()) {
    output.out(fmt::format("{} shards and their indices are what {} samples of '{}' make\n", shards,
                           total, options.input));
    return 0;
  }
  output.out(differences);
  return 1;
}

}  // namespace prepare
