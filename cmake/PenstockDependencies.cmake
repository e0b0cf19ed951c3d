# What the library itself needs. Each is packaged by Debian and Ubuntu; scripts/setup installs them.
find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(WebP REQUIRED)
find_package(ZLIB REQUIRED) # libpng has it
find_package(hwy CONFIG REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(xxHash REQUIRED)

# Sets `found` to the packages in the user's list `chosen` that are there, from oldest_PACKAGE on; the list may have those in `all`.
macro(penstock_find_chosen chosen all found)
  set(${found})
  foreach(chosen_package IN LISTS ${chosen})
    if(NOT ";${all};" MATCHES ";${chosen_package};")
      message(FATAL_ERROR "${chosen} may have ${all}, or some of them; found ${chosen_package}")
    endif()
    find_package(${chosen_package} ${oldest_${chosen_package}})
    if(${chosen_package}_FOUND)
      list(APPEND ${found} ${chosen_package})
    endif()
  endforeach()
endmacro()

# Kinds of images that are decoded where their library is found. The oldest versions are those that the readers were written for.
set(oldest_GIF 5.1)
set(oldest_TIFF 4.5)
set(oldest_HEIF 1.15)
penstock_find_chosen(PENSTOCK_IMAGES "GIF;TIFF;HEIF;JPEG_XL" PENSTOCK_IMAGE_LIBRARIES)
list(JOIN PENSTOCK_IMAGE_LIBRARIES ", " kinds)
message(STATUS "penstock: images are decoded of the kinds JPEG, PNG, WebP, BMP, ${kinds}")

# Codecs of Parquet files, beside GZIP, where their libraries are found.
penstock_find_chosen(PENSTOCK_TABLES "Snappy;Zstd" PENSTOCK_TABLE_LIBRARIES)
list(JOIN PENSTOCK_TABLE_LIBRARIES ", " codecs)
message(STATUS "penstock: Parquet files are decompressed with Gzip, ${codecs}")

# Reads the data.yaml of YOLO's data sets.
set(PENSTOCK_HAVE_YAML OFF)
if(PENSTOCK_YAML)
  find_package(YamlCpp)
  if(YamlCpp_FOUND)
    set(PENSTOCK_HAVE_YAML ON)
  endif()
endif()

# Transports between processes, each optional.
if(PENSTOCK_MPI)
  find_package(MPI COMPONENTS C)
endif()
if(PENSTOCK_GLOO)
  find_package(Gloo)
endif()

# Signs requests to object storage, and proves to the processes of a launch who they are.
find_package(OpenSSL)

# Reads the annotation files of Pascal VOC and what object storage answers.
set(PENSTOCK_HAVE_XML OFF)
if(PENSTOCK_XML OR PENSTOCK_S3)
  find_package(pugixml)
  if(PENSTOCK_XML AND pugixml_FOUND)
    set(PENSTOCK_HAVE_XML ON)
  endif()
endif()

# Object storage, optional too.
set(PENSTOCK_HAVE_S3 OFF)
if(PENSTOCK_S3)
  find_package(CURL 7.85)
  if(CURL_FOUND AND OPENSSL_FOUND AND pugixml_FOUND)
    set(PENSTOCK_HAVE_S3 ON)
  else()
    message(STATUS "penstock: no libcurl 7.85, OpenSSL or pugixml to build with: s3:// paths will be refused")
  endif()
endif()
