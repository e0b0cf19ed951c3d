// The library never prints and never ends the program: none of its objects calls what does.
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::set<std::string> kForbidden = {
    "printf",    "vprintf",   "__printf_chk", "__vprintf_chk", "fprintf", "__fprintf_chk",
    "puts",      "putchar",   "perror",       "stdout",        "stderr",  "std::cout",
    "std::cerr", "std::clog", "abort",        "exit",          "_exit",   "quick_exit"};

// "file: symbol" for each forbidden symbol that an object of a library leaves to others.
std::vector<std::string> forbidden_in(const std::string& library) {
  const std::string dynamic = library.ends_with(".a") ? "" : " -D";
  const std::string command = PENSTOCK_NM " -u -C -A" + dynamic + " '" + library + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> nm(::popen(command.c_str(), "r"), ::pclose);
  if (!nm) throw std::runtime_error("cannot start " + command);
  std::vector<std::string> found;
  int symbols = 0;
  std::array<char, 65536> buffer;
  while (std::fgets(buffer.data(), buffer.size(), nm.get())) {
    // path:object:     U symbol[@VERSION]
    const std::string line(buffer.data());
    const std::size_t mark = line.find(" U ");
    if (mark == std::string::npos) continue;
    ++symbols;
    const std::string symbol = line.substr(mark + 3, line.find_first_of("@\n", mark) - mark - 3);
    // nvcc writes it into the stubs that launch kernels.
    if (symbol == "exit" && line.find(".cu.o:") != std::string::npos) continue;
    if (kForbidden.contains(symbol)) {
      found.push_back(line.substr(0, line.find_last_not_of(" :", mark) + 1) + ": " + symbol);
    }
  }
  if (symbols == 0) throw std::runtime_error("nm found nothing in " + library);
  return found;
}

TEST(Symbols, TheLibraryNeitherPrintsNorEndsTheProgram) {
  EXPECT_THAT(forbidden_in(PENSTOCK_LIBRARY), IsEmpty());
}

TEST(Symbols, PlantedCallsAreFound) {
  const std::vector<std::string> found = forbidden_in(PENSTOCK_PLANTED);
  for (const char* symbol : {"std::cout", "std::cerr", "stderr", "puts", "abort", "exit"}) {
    EXPECT_THAT(found, Contains(EndsWith(std::string(": ") + symbol)));
  }
  EXPECT_THAT(found, Contains(HasSubstr("printf")));
}

}  // namespace
