// The libraries never print and never end the program: none of their objects calls what does. And no two of their
// objects define the same function, of which a linker would take the one that it comes to first.
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::set<std::string> kForbidden = {
    "printf",    "vprintf",   "__printf_chk", "__vprintf_chk", "fprintf", "__fprintf_chk",
    "puts",      "putchar",   "perror",       "stdout",        "stderr",  "std::cout",
    "std::cerr", "std::clog", "abort",        "exit",          "_exit",   "quick_exit"};

const std::vector<std::string> kLibraries = {PENSTOCK_LIBRARIES};

// What nm says of a library, line by line: "path:object: address type symbol".
std::vector<std::string> lines_of_nm(const std::string& options, const std::string& library) {
  const std::string dynamic = library.ends_with(".a") ? "" : " -D";
  const std::string command = PENSTOCK_NM " -A " + options + dynamic + " '" + library + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> nm(::popen(command.c_str(), "r"), ::pclose);
  if (!nm) throw std::runtime_error("cannot start " + command);
  std::vector<std::string> lines;
  std::array<char, 65536> buffer;
  while (std::fgets(buffer.data(), buffer.size(), nm.get())) lines.emplace_back(buffer.data());
  return lines;
}

// "file: symbol" for each forbidden symbol that an object of a library leaves to others.
std::vector<std::string> forbidden_in(const std::string& library) {
  std::vector<std::string> found;
  int symbols = 0;
  for (const std::string& line : lines_of_nm("-C -u", library)) {
    // path:object:     U symbol[@VERSION]
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

// "symbol: object, object" for what more than one object defines, and not as an inline function or a template. Mangled,
// since the two symbols of a constructor read alike otherwise.
std::vector<std::string> defined_twice_in(const std::vector<std::string>& libraries) {
  std::map<std::string, std::vector<std::string>> objects;
  for (const std::string& library : libraries) {
    for (const std::string& line : lines_of_nm("-g --defined-only", library)) {
      for (const char* type : {" T ", " D ", " B ", " R "}) {
        const std::size_t mark = line.find(type);
        if (mark == std::string::npos) continue;
        const std::string object = line.substr(0, line.rfind(':', mark));
        objects[line.substr(mark + 3, line.find('\n') - mark - 3)].push_back(object);
        break;
      }
    }
  }
  if (objects.empty()) throw std::runtime_error("nm found nothing");
  std::vector<std::string> found;
  for (const auto& [symbol, where] : objects)
    if (where.size() > 1) found.push_back(symbol + ": " + where[0] + ", " + where[1]);
  return found;
}

TEST(Symbols, TheLibrariesNeitherPrintNorEndTheProgram) {
  for (const std::string& library : kLibraries) EXPECT_THAT(forbidden_in(library), IsEmpty());
}

TEST(Symbols, NoTwoObjectsDefineTheSameFunction) {
  if (!kLibraries.front().ends_with(".a")) GTEST_SKIP() << "linking a shared library has proved it";
  EXPECT_THAT(defined_twice_in(kLibraries), IsEmpty());
}

TEST(Symbols, APlantedSecondDefinitionIsFound) {
  EXPECT_THAT(defined_twice_in({PENSTOCK_PLANTED}),
              ElementsAre(AllOf(HasSubstr("planted_twice"), HasSubstr("planted_again"))));
}

TEST(Symbols, PlantedCallsAreFound) {
  const std::vector<std::string> found = forbidden_in(PENSTOCK_PLANTED);
  for (const char* symbol : {"std::cout", "std::cerr", "stderr", "puts", "abort", "exit"}) {
    EXPECT_THAT(found, Contains(EndsWith(std::string(": ") + symbol)));
  }
  EXPECT_THAT(found, Contains(HasSubstr("printf")));
}

}  // namespace
