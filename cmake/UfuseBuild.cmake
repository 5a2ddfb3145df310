# What do all targets of ufuse have in common?
#
# The compiler settings (target `ufuse_settings`), libomp (target `ufuse_openmp`), and `ufuse_library`, which makes
# a component's static library. Included once by the top CMakeLists.txt.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(UFUSE_CCACHE ccache)
  if(UFUSE_CCACHE)
    # The last word is what ccache asks for where headers are precompiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
                                    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                    "${UFUSE_CCACHE}")
  endif()
endif()

# The floating-point flags are part of the contract: contraction would change bits, and without the others `sqrt`
# and comparisons do not vectorise. No vectors of which only a part is elements (toolchain.cpp says why). No -march
# here: only the loops compiled at run time are made for this CPU.
add_library(ufuse_settings INTERFACE)
target_include_directories(ufuse_settings INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(ufuse_settings INTERFACE UFUSE_VERSION="${PROJECT_VERSION}")
target_compile_options(
  ufuse_settings INTERFACE -Wall -Wextra $<$<BOOL:${UFUSE_WERROR}>:-Werror> -ffp-contract=off -fno-math-errno
                           -fno-trapping-math -fwrapv
                           $<$<CXX_COMPILER_ID:GNU>:--param=vect-partial-vector-usage=0>
                           # Bits of truth values are combined without branches, so that loops vectorise.
                           $<$<CXX_COMPILER_ID:Clang>:-Wno-bitwise-instead-of-logical>)
# ir/support/checked.h: what is verified in builds that look for our own mistakes.
target_compile_definitions(ufuse_settings
                           INTERFACE $<$<OR:$<CONFIG:Debug>,$<BOOL:${UFUSE_SANITIZE}>>:UFUSE_CHECKED>)
if(UFUSE_SANITIZE)
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  # Of null pointers and sizes of objects the address sanitizer tells when they are used; these checks and `vptr`
  # double the time of compiling, and -O2 adds half.
  list(APPEND sanitizers -fno-sanitize=null,object-size,vptr)
  # g++ reports false "maybe uninitialized" reads in sanitized std::optional and std::variant.
  target_compile_options(ufuse_settings INTERFACE ${sanitizers} -O1 -g1 -Wno-error=maybe-uninitialized)
  target_link_options(ufuse_settings INTERFACE ${sanitizers})
endif()

# libomp also under g++: libgomp hangs in a forked child after any parallel region of the parent. libomp exports
# libgomp's entry points, so g++ compiles with -fopenmp and -fopenmp stays off the link line.
file(GLOB llvm_library_dirs /usr/lib/llvm-*/lib)
list(SORT llvm_library_dirs COMPARE NATURAL ORDER DESCENDING)
find_library(UFUSE_LIBOMP NAMES omp libomp.so.5 HINTS ${llvm_library_dirs})
if(NOT UFUSE_LIBOMP)
  message(FATAL_ERROR "libomp was not found. On Debian and Ubuntu: apt-get install libomp-dev")
endif()
add_library(ufuse_openmp INTERFACE)
target_compile_options(ufuse_openmp INTERFACE -fopenmp)
target_compile_definitions(ufuse_openmp INTERFACE UFUSE_LIBOMP="${UFUSE_LIBOMP}")
target_link_libraries(ufuse_openmp INTERFACE "${UFUSE_LIBOMP}" ${CMAKE_DL_LIBS})

# ufuse_library(name GLOBS pattern... DEPENDS library...)
#
# Makes the static library `name` from the files that match, relative to the calling folder. A folder without
# sources gives an INTERFACE library of the same name, so whatever links to it still configures.
function(ufuse_library name)
  cmake_parse_arguments(arg "" "" "GLOBS;DEPENDS" ${ARGN})
  list(TRANSFORM arg_GLOBS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  file(GLOB sources CONFIGURE_DEPENDS ${arg_GLOBS})
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ufuse_settings ${arg_DEPENDS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ufuse_settings ${arg_DEPENDS})
  endif()
endfunction()
