# `cmake --install` makes a prefix from which find_package(penstock CONFIG) works.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PENSTOCK_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)

get_target_property(library_type penstock TYPE)
set(PENSTOCK_SHARED OFF)
if(library_type STREQUAL "SHARED_LIBRARY")
  set(PENSTOCK_SHARED ON)
endif()

install(TARGETS penstock EXPORT penstockTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.cuh")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT penstockTargets NAMESPACE penstock:: DESTINATION ${PENSTOCK_CMAKE_DIR})

# find_package(penstock COMPONENTS mpi gloo)
foreach(transport mpi gloo)
  if(TARGET penstock_${transport})
    install(TARGETS penstock_${transport} EXPORT penstock-${transport}Targets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT penstock-${transport}Targets NAMESPACE penstock:: DESTINATION ${PENSTOCK_CMAKE_DIR})
  endif()
endforeach()

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
          DESTINATION ${PENSTOCK_CMAKE_DIR})
endif()
