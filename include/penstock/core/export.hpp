// core/export: which names a shared library of penstock has for its users: those of its public headers.
#pragma once

/// Stands in `namespace PENSTOCK_EXPORT penstock {` of each public header, and of the headers in src/ that another library
/// of the project includes, for all that is declared there. CMake defines PENSTOCK_SHARED for shared libraries and for
/// what links them; a static library exports nothing, so that a plugin or a Python module that contains one does not
/// either.
#ifdef PENSTOCK_SHARED
#define PENSTOCK_EXPORT [[gnu::visibility("default")]]
#else
#define PENSTOCK_EXPORT
#endif
