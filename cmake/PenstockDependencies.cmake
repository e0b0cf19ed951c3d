# What the library itself needs. Each is packaged by Debian and Ubuntu; scripts/setup installs them.
find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(WebP REQUIRED)
find_package(hwy CONFIG REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(xxHash REQUIRED)

# Transports between processes, each optional.
if(PENSTOCK_MPI)
  find_package(MPI COMPONENTS C)
endif()
if(PENSTOCK_GLOO)
  find_package(Gloo)
endif()
