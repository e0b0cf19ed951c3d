#include "prepare.hpp"

int main(int argc, char** argv) {
  return prepare::run_program({argv + (argc > 0 ? 1 : 0), argv + argc},
                              programs::standard_output());
}
