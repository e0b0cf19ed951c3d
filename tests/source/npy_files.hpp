// Arrays as NumPy 2.4 writes them, byte by byte; made with numpy.lib.format.write_array.
#pragma once

#include <string_view>

namespace penstock::test {

using namespace std::string_view_literals;

// clang-format off
// np.arange(6, dtype="<f4").reshape(3, 2) / 4
inline constexpr std::string_view kFloats =
    "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2),"
    " }                                                          \n\000\000\000\000\000"
    "\000\200>\000\000\000?\000\000@?\000\000\200?\000\000\240?"
    ""sv;
// np.array([5, -1, 2**40], "<i8"), version 2.0
inline constexpr std::string_view kIntegersV2 =
    "\223NUMPY\002\000t\000\000\000{'descr': '<i8', 'fortran_order': False, 'shape':"
    " (3,), }                                                          \n\005\000\000"
    "\000\000\000\000\000\377\377\377\377\377\377\377\377\000\000\000\000\000\001\000"
    "\000"
    ""sv;
// np.array([[1, 2]], "<f2"), version 3.0
inline constexpr std::string_view kHalvesV3 =
    "\223NUMPY\003\000t\000\000\000{'descr': '<f2', 'fortran_order': False, 'shape':"
    " (1, 2), }                                                        \n\000<\000@"
    ""sv;
// np.array([True, False, True])
inline constexpr std::string_view kBools =
    "\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }"
    "                                                            \n\001\000\001"
    ""sv;
// np.arange(12, dtype="u1").reshape(2, 3, 2)
inline constexpr std::string_view kBytes =
    "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, "
    "2), }                                                       \n\000\001\002\003\004"
    "\005\006\007\010\011\n\013"
    ""sv;
// np.zeros((0, 4), "<u2")
inline constexpr std::string_view kNoRows =
    "\223NUMPY\001\000v\000{'descr': '<u2', 'fortran_order': False, 'shape': (0, 4),"
    " }                                                          \n"
    ""sv;
// np.array([1, 2], ">i4")
inline constexpr std::string_view kBigEndian =
    "\223NUMPY\001\000v\000{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }"
    "                                                            \n\000\000\000\001\000"
    "\000\000\002"
    ""sv;
// np.asfortranarray(np.arange(4, dtype="<i2").reshape(2, 2))
inline constexpr std::string_view kFortran =
    "\223NUMPY\001\000v\000{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), "
    "}                                                           \n\000\000\002\000\001"
    "\000\003\000"
    ""sv;
// np.array([[1], None], object)
inline constexpr std::string_view kObjects =
    "\223NUMPY\001\000v\000{'descr': '|O', 'fortran_order': False, 'shape': (2,), } "
    "                                                            \n\200\004\225\220\000"
    "\000\000\000\000\000\000\214\026numpy._core.multiarray\224\214\014_reconstruct\224"
    "\223\224\214\005numpy\224\214\007ndarray\224\223\224K\000\205\224C\001b\224\207"
    "\224R\224(K\001K\002\205\224h\003\214\005dtype\224\223\224\214\002O8\224\211\210"
    "\207\224R\224(K\003\214\001|\224NNNJ\377\377\377\377J\377\377\377\377K?t\224b\211"
    "]\224(]\224K\001aNet\224b."
    ""sv;
// np.array([(1, 2.)], [("a", "<i4"), ("b", "<f4")])
inline constexpr std::string_view kStructured =
    "\223NUMPY\001\000v\000{'descr': [('a', '<i4'), ('b', '<f4')], 'fortran_order': "
    "False, 'shape': (1,), }                                     \n\001\000\000\000\000"
    "\000\000@"
    ""sv;
// np.array([1j], "<c8")
inline constexpr std::string_view kComplex =
    "\223NUMPY\001\000v\000{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"
    "                                                            \n\000\000\000\000\000"
    "\000\200?"
    ""sv;
// np.array(["ab"])
inline constexpr std::string_view kText =
    "\223NUMPY\001\000v\000{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }"
    "                                                            \na\000\000\000b\000"
    "\000\000"
    ""sv;
// np.array(7, "<i4")
inline constexpr std::string_view kScalar =
    "\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (), }  "
    "                                                            \n\007\000\000\000"
    ""sv;
// clang-format on

}  // namespace penstock::test
