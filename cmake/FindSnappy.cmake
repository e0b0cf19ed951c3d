# libsnappy as Snappy::Snappy. Searches CMAKE_PREFIX_PATH, so an unpacked prefix works too.
find_path(Snappy_INCLUDE_DIR snappy-c.h)
find_library(Snappy_LIBRARY snappy)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Snappy REQUIRED_VARS Snappy_LIBRARY Snappy_INCLUDE_DIR)
if(Snappy_FOUND AND NOT TARGET Snappy::Snappy)
  add_library(Snappy::Snappy UNKNOWN IMPORTED)
  set_target_properties(Snappy::Snappy PROPERTIES IMPORTED_LOCATION ${Snappy_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${Snappy_INCLUDE_DIR})
endif()
mark_as_advanced(Snappy_INCLUDE_DIR Snappy_LIBRARY)
