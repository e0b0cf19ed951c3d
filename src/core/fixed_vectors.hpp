// core/fixed_vectors: for files that keep Highway's vectors in arrays. Vectors without a size at compile time cannot be, and
// the CPUs that have them have others, too. SSSE3 is left out: few CPUs, all from before 2014, end with it and take the plain code, and
// each instruction set compiles all of the code once more. Included before everything of Highway.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3)
