#include "src/source/shards/shard_names.hpp"

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
