# libjxl's decoder as JPEG_XL::JPEG_XL. Searches CMAKE_PREFIX_PATH, so an unpacked prefix works too.
find_path(JPEG_XL_INCLUDE_DIR jxl/decode.h)
find_library(JPEG_XL_LIBRARY jxl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(JPEG_XL REQUIRED_VARS JPEG_XL_LIBRARY JPEG_XL_INCLUDE_DIR)
if(JPEG_XL_FOUND AND NOT TARGET JPEG_XL::JPEG_XL)
  add_library(JPEG_XL::JPEG_XL UNKNOWN IMPORTED)
  set_target_properties(JPEG_XL::JPEG_XL PROPERTIES IMPORTED_LOCATION ${JPEG_XL_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${JPEG_XL_INCLUDE_DIR})
endif()
mark_as_advanced(JPEG_XL_INCLUDE_DIR JPEG_XL_LIBRARY)
