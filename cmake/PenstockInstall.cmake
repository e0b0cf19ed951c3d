# `cmake --install` makes a prefix from which find_package(penstock CONFIG) works.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PENSTOCK_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)

get_target_property(library_type penstock TYPE)
set(PENSTOCK_SHARED OFF)
if(library_type STREQUAL "SHARED_LIBRARY")
  set(PENSTOCK_SHARED ON)
endif()

# find_package(penstock COMPONENTS jpeg loader sync testing mpi gloo): each has its libraries in an export of its own, so that
# those which are not asked for need nothing.
function(penstock_install component)
  foreach(library IN LISTS ARGN)
    if(TARGET ${library})
      install(TARGETS ${library} EXPORT penstock-${component}Targets
              LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
              ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
              RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
      set(found ON)
    endif()
  endforeach()
  if(found)
    install(EXPORT penstock-${component}Targets NAMESPACE penstock:: DESTINATION ${PENSTOCK_CMAKE_DIR})
  endif()
endfunction()
penstock_install(jpeg penstock_core penstock_jpeg)
penstock_install(loader penstock)
penstock_install(sync penstock_sync)
penstock_install(testing penstock_testing)
penstock_install(mpi penstock_mpi)
penstock_install(gloo penstock_gloo)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.cuh")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/penstockConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/penstockConfig.cmake
                              INSTALL_DESTINATION ${PENSTOCK_CMAKE_DIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstockConfig.cmake
              ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
        DESTINATION ${PENSTOCK_CMAKE_DIR})
if(NOT PENSTOCK_SHARED) # CMake has no find modules of its own for these
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/FindWebP.cmake ${CMAKE_CURRENT_LIST_DIR}/FindGloo.cmake
                ${CMAKE_CURRENT_LIST_DIR}/FindHEIF.cmake ${CMAKE_CURRENT_LIST_DIR}/FindJPEG_XL.cmake
                ${CMAKE_CURRENT_LIST_DIR}/FindSnappy.cmake ${CMAKE_CURRENT_LIST_DIR}/FindZstd.cmake
                ${CMAKE_CURRENT_LIST_DIR}/FindYamlCpp.cmake
          DESTINATION ${PENSTOCK_CMAKE_DIR})
endif()
