#include "src/plan/lists.hpp"

#include <cstdint>
#include <cstring>
#include <span>

#include <penstock/core/random.hpp>

#include "src/core/output_file.hpp"
#include "src/source/arrays/npy.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::plan {

namespace {

using core::Json;

constexpr std::size_t kMostInJson = 1000;

// How an array holds a list.
template <class T>
struct Row {
  static constexpr DType kType = dtype_of<T>();
  static constexpr const char* kName = std::is_floating_point_v<T> ? "f8" : "u8";
  static std::string shape(std::size_t count) { return fmt::format("({},)", count); }
  static bool fits(std::span<const std::int64_t> extents) { return extents.size() == 1; }
};
template <>
struct Row<ImageSize> {
  static_assert(sizeof(ImageSize) == 2 * sizeof(std::int32_t));
  static constexpr DType kType = DType::i32;
  static constexpr const char* kName = "i4";
  static std::string shape(std::size_t count) { return fmt::format("({}, 2)", count); }
  static bool fits(std::span<const std::int64_t> extents) {
    return extents.size() == 2 && extents[1] == 2;
  }
};

// Version 1.0 of the format: the header is padded so that the data begin at a multiple of 64.
template <class T>
std::string npy_header(std::size_t count) {
  std::string text = fmt::format("{{'descr': '<{}', 'fortran_order': False, 'shape': {}, }}",
                                 Row<T>::kName, Row<T>::shape(count));
  constexpr std::size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

template <class T>
void write_file(const std::vector<T>& list, const std::filesystem::path& path) {
  core::OutputFile file(path);
  const std::string header = npy_header<T>(list.size());
  file.write(std::as_bytes(std::span(header)));
  file.write(std::as_bytes(std::span(list)));
  file.finish();
}

template <class T>
std::vector<T> read_file(const std::filesystem::path& path, const std::string& where) {
  const storage::MappedFile file = storage::map_file(path);
  const source::NpyHeader header = source::read_npy_header(file.bytes, path.string());
  if (header.dtype != Row<T>::kType || !Row<T>::fits(header.shape))
    throw Error(fmt::format("{}: {} holds no such list of {}", where, path.string(),
                            name_of(Row<T>::kType)));
  std::vector<T> list(static_cast<std::size_t>(header.shape.front()));
  if (!list.empty())
    std::memcpy(list.data(), file.bytes.data() + header.data_at, list.size() * sizeof(T));
  return list;
}

struct Summary {
  std::uint64_t count = 0;
  std::string hash;
  std::string file;
};

template <class Visitor>
void visit_fields(Visitor& visit, Summary& summary) {
  visit.required("count", summary.count);
  visit.required("hash", summary.hash);
  visit.required("file", summary.file);
}

}  // namespace

template <class T>
std::string hash_of(const std::vector<T>& list) {
  const auto bytes = std::as_bytes(std::span(list));
  return hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

template <class T>
Json summary_of(const std::vector<T>& list) {
  return {{"count", list.size()}, {"hash", hash_of(list)}};
}

template <class T>
Json write_list(const std::vector<T>& list, const std::filesystem::path& folder) {
  if (folder.empty() || list.size() <= kMostInJson) return core::write_json(list);
  Json summary = summary_of(list);
  const std::string name = fmt::format("penstock-list-{}.npy", hash_of(list));
  write_file(list, folder / name);
  summary["file"] = name;
  return summary;
}

template <class T>
List<T> read_list(const Json& json, const std::filesystem::path& folder, const std::string& where) {
  auto list = std::make_shared<std::vector<T>>();
  if (!json.is_object()) {
    core::read_json(json, *list, where);
    return list;
  }
  Summary summary;
  core::read_json(json, summary, where);
  if (summary.file.find('/') != std::string::npos || summary.file.starts_with('.'))
    throw Error(fmt::format("{}: the file of a list lies beside the plan, found '{}'", where,
                            summary.file));
  if (folder.empty())
    throw Error(
        fmt::format("{}: the list lies in the file {}: name that folder "
                    "(the option lists), or load the plan from its file",
                    where, summary.file));
  *list = read_file<T>(folder / summary.file, where);
  if (list->size() != summary.count || hash_of(*list) != summary.hash)
    throw Error(
        fmt::format("{}: {} holds other numbers than the plan was written with: take the "
                    "file that was written with it",
                    where, (folder / summary.file).string()));
  return list;
}

template std::string hash_of(const std::vector<std::uint64_t>&);
template std::string hash_of(const std::vector<double>&);
template std::string hash_of(const std::vector<ImageSize>&);
template Json summary_of(const std::vector<std::uint64_t>&);
template Json summary_of(const std::vector<double>&);
template Json summary_of(const std::vector<ImageSize>&);
template Json write_list(const std::vector<std::uint64_t>&, const std::filesystem::path&);
template Json write_list(const std::vector<double>&, const std::filesystem::path&);
template Json write_list(const std::vector<ImageSize>&, const std::filesystem::path&);
template List<std::uint64_t> read_list(const Json&, const std::filesystem::path&,
                                       const std::string&);
template List<double> read_list(const Json&, const std::filesystem::path&, const std::string&);
template List<ImageSize> read_list(const Json&, const std::filesystem::path&, const std::string&);

}  // namespace penstock::plan
