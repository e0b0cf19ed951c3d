// argv[1] of this test program is the path of penstock-throughput.
#include "tests/pipelines/run_program.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1)
    penstock::testing_support::program = argv[1];  // a listing of the cases comes without
  return RUN_ALL_TESTS();
}
