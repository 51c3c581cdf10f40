# The C++ loader for CMake: kernelpack::loader (headers) and kernelpack::c (the C interface).
#
#     find_package(kernelpack REQUIRED)   # CMAKE_PREFIX_PATH: `kernelpack config --cmakedir`
#     target_link_libraries(server PRIVATE kernelpack::loader)
#
# zstd's library and header must be installed; zstd_LIBRARY and zstd_INCLUDE_DIR may say where.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_library(zstd_LIBRARY zstd)
find_path(zstd_INCLUDE_DIR zstd.h)
if(NOT zstd_LIBRARY OR NOT zstd_INCLUDE_DIR)
  set(kernelpack_FOUND FALSE)
  set(kernelpack_NOT_FOUND_MESSAGE "zstd's development files are missing (Debian: libzstd-dev)")
  return()
endif()

get_filename_component(kernelpack_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)

if(NOT TARGET kernelpack::loader)
  add_library(kernelpack::loader INTERFACE IMPORTED)
  set_target_properties(kernelpack::loader PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${kernelpack_INCLUDE_DIR};${zstd_INCLUDE_DIR}"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES "${zstd_LIBRARY};Threads::Threads;${CMAKE_DL_LIBS}")

  add_library(kernelpack_c STATIC EXCLUDE_FROM_ALL
    "${kernelpack_INCLUDE_DIR}/kernelpack/kernelpack.cpp")
  set_target_properties(kernelpack_c PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(kernelpack_c PUBLIC kernelpack::loader)
  add_library(kernelpack::c ALIAS kernelpack_c)
endif()
