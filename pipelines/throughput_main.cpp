#include <cstdio>

#include <unistd.h>

#include "throughput.hpp"

int main(int argc, char** argv) {
  const auto to = [](std::FILE* file) {
    return [file](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), file);
      std::fflush(file);
    };
  };
  return throughput::run_program(
      {argv + (argc > 0 ? 1 : 0), argv + argc},
      {.out = to(stdout), .err = to(stderr), .err_is_terminal = isatty(STDERR_FILENO) != 0});
}
