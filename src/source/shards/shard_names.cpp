#include "src/source/shards/shard_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <vector>

#include <penstock/source/images.hpp>

#include "src/core/lower_case.hpp"

namespace penstock::source {

namespace {

// "train-00000-of-01024" and the like.
bool is_numbered(std::string_view name) noexcept {
  const auto take_digits = [&] {
    const std::size_t end = name.find_last_not_of("0123456789");
    const bool some = end + 1 < name.size();
    name = name.substr(0, end + 1);
    return some;
  };
  if (!take_digits() || !name.ends_with("-of-")) return false;
  name.remove_suffix(4);
  return take_digits() && name.ends_with('-');
}

}  // namespace

bool is_tar_name(std::string_view name) { return core::lower_case(name).ends_with(".tar"); }

bool is_parquet_name(std::string_view name) {
  const std::string lower = core::lower_case(name);
  return lower.ends_with(".parquet") || lower.ends_with(".parq");
}

bool is_arrow_name(std::string_view name) {
  const std::string lower = core::lower_case(name);
  return lower.ends_with(".arrow") || lower.ends_with(".arrows") || lower.ends_with(".ipc") ||
         lower.ends_with(".feather");
}

bool is_mds_name(std::string_view name) {
  const std::string lower = core::lower_case(name);
  std::string_view rest = lower;
  for (const std::string_view ending : {".zstd", ".gz", ".bz2", ".br", ".snappy"})
    if (rest.ends_with(".mds" + std::string(ending))) rest.remove_suffix(ending.size());
  return rest.ends_with(".mds");
}

bool is_tfrecord_name(std::string_view name) noexcept {
  return name.ends_with(".tfrecord") || name.ends_with(".tfrecords") || name.ends_with(".tfrec") ||
         name.ends_with(".record") || is_numbered(name);
}

bool is_image_name(std::string_view name) {
  static const std::vector<std::string> endings = ImageFolderOptions().extensions;
  const std::string lower = core::lower_case(name);
  return std::ranges::any_of(endings,
                             [&](const std::string& ending) { return lower.ends_with(ending); });
}

std::optional<SplitName> split_of_name(std::string_view name) {
  static constexpr std::array<std::array<std::string_view, 5>, 3> kWords{{
      {"train", "training"},
      {"validation", "valid", "val", "dev"},
      {"test", "testing", "eval", "evaluation"},
  }};
  const std::string lower = core::lower_case(name);
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  for (auto begin = std::ranges::find_if(lower, is_letter); begin != lower.end();) {
    const auto end = std::find_if_not(begin, lower.end(), is_letter);
    const std::string_view word(begin, end);
    for (const auto& words : kWords)
      if (std::ranges::count(words, word) > 0)
        return SplitName{
            words.front(),
            std::string(name.substr(static_cast<std::size_t>(begin - lower.begin()), word.size()))};
    begin = std::find_if(end, lower.end(), is_letter);
  }
  return std::nullopt;
}

std::optional<NumberedName> numbered_name(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kOf = "-of-";
  const auto number_in = [](std::string_view digits) {
    std::uint64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
  };
  const std::size_t of = name.rfind(kOf);
  if (of == name.npos) return std::nullopt;
  const std::size_t before = name.find_last_not_of(kDigits, of == 0 ? 0 : of - 1);
  const std::size_t begin = before == name.npos ? 0 : before + 1;
  const std::size_t behind =
      std::min(name.find_first_not_of(kDigits, of + kOf.size()), name.size());
  const auto number = number_in(name.substr(begin, of - begin));
  const auto count = number_in(name.substr(of + kOf.size(), behind - of - kOf.size()));
  if (!number || !count) return std::nullopt;
  std::string_view rest = name.substr(behind);
  std::string pattern =
      std::string(name.substr(0, begin)) + "*" + std::string(name.substr(of, behind - of));
  if (!rest.empty() && rest.front() != '.') {
    pattern += '*';
    rest.remove_prefix(std::min(rest.rfind('.'), rest.size()));
  }
  return NumberedName{pattern + std::string(rest), *number, *count};
}

std::string name_of_pattern(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  std::string name;
  char close = 0;  // of the bracket that is open
  for (const char c : path) {
    if (close != 0) {
      if (c == close) close = 0;
    } else if (c == '/') {
      name.clear();
    } else if (c == '{' || c == '[') {
      close = c == '{' ? '}' : ']';
      name += '0';
    } else {
      name += c == '*' || c == '?' ? '0' : c;
    }
  }
  return name;
}

}  // namespace penstock::source
