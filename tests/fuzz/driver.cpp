// Runs a fuzz target without libFuzzer: every file of some folders as it is, then mutations of them.
//
// Usage: TARGET FOLDER [RUNS [SEED [FOLDER...]]]     an input that aborts the target is left in ./crash
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kLongest = 65536;

// The input at hand, for the handler.
const Bytes* input = nullptr;

void keep_input(int) {
  if (std::FILE* file = std::fopen("crash", "wb")) {
    std::fwrite(input->data(), 1, input->size(), file);
    std::fclose(file);
  }
}

void run(const Bytes& bytes) {
  input = &bytes;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Bytes operator()(const std::vector<Bytes>& corpus) {
    Bytes bytes = one_of(corpus);
    // Mostly a little damage: of much of it, little can be told.
    for (std::size_t n = 1 + below(below(8) == 0 ? 40 : 4); n > 0; --n) mutate(bytes, corpus);
    return bytes;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  const Bytes& one_of(const std::vector<Bytes>& corpus) { return corpus[below(corpus.size())]; }
  std::ptrdiff_t place(const Bytes& bytes) {
    return static_cast<std::ptrdiff_t>(below(bytes.size()));
  }

  void mutate(Bytes& bytes, const std::vector<Bytes>& corpus) {
    if (bytes.empty()) bytes.push_back(0);
    std::uint8_t& byte = bytes[below(bytes.size())];
    switch (below(10)) {
      case 0:
        byte = static_cast<std::uint8_t>(random_());
        break;
      case 1:
        byte ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 2: {
        constexpr std::uint8_t kNotable[] = {0, 1, 0x11, 0x22, 0x3F, 0x40, 0x7F, 0x80, 0xFE, 0xFF};
        byte = kNotable[below(std::size(kNotable))];
        break;
      }
      case 3: {
        constexpr std::uint8_t kMarkers[] = {0xC0, 0xC4, 0xD0, 0xD1, 0xD7, 0xD8,
                                             0xD9, 0xDA, 0xDB, 0xDD, 0xE1, 0xFE};
        const auto at = below(bytes.size());
        bytes[at] = 0xFF;
        if (at + 1 < bytes.size()) bytes[at + 1] = kMarkers[below(std::size(kMarkers))];
        break;
      }
      case 4:
        bytes.resize(below(bytes.size() + 1));
        break;
      case 5: {
        const auto from = bytes.begin() + place(bytes);
        bytes.erase(from, from + static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(
                                     16, static_cast<std::size_t>(bytes.end() - from)))));
        break;
      }
      case 6: {
        Bytes more(1 + below(8));
        for (auto& b : more) b = static_cast<std::uint8_t>(random_());
        bytes.insert(bytes.begin() + place(bytes), more.begin(), more.end());
        break;
      }
      case 7: {  // what stands elsewhere in it
        const std::size_t size = 1 + below(std::min<std::size_t>(bytes.size(), 64));
        const std::size_t from = below(bytes.size() - size + 1);
        const std::size_t to = below(bytes.size() - size + 1);
        std::copy_n(Bytes(bytes).begin() + static_cast<std::ptrdiff_t>(from), size,
                    bytes.begin() + static_cast<std::ptrdiff_t>(to));
        break;
      }
      case 8: {  // the rest of another
        const Bytes& other = one_of(corpus);
        if (other.empty()) break;
        const std::size_t at = below(std::min(bytes.size(), other.size()));
        bytes.resize(at);
        bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(at), other.end());
        break;
      }
      default:
        byte = static_cast<std::uint8_t>(byte + (below(2) == 0 ? 1 : 255));
    }
    if (bytes.size() > kLongest) bytes.resize(kLongest);
  }

  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [RUNS [SEED [FOLDER...]]]\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> names;
  for (int k = 1; k < argc; ++k)
    if (k == 1 || k > 3)
      for (const auto& entry : std::filesystem::directory_iterator(argv[k]))
        names.push_back(entry.path());
  std::ranges::sort(names);
  std::vector<Bytes> corpus;
  for (const auto& name : names) {
    std::ifstream in(name, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no files there: run penstock_fuzz_corpus first\n", argv[1]);
    return 2;
  }
  const std::uint64_t runs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::signal(SIGABRT, keep_input);
  for (const Bytes& bytes : corpus) run(bytes);
  Mutator mutator(seed);
  for (std::uint64_t i = 0; i < runs; ++i) {
    // Of its own size, for the sanitizer to watch its end.
    const Bytes bytes = mutator(corpus);
    run(bytes);
  }
  std::printf("%zu files and %llu mutations, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
  return 0;
}
