# How does a text file (the kernels' prelude) get into the binary?
#
#   ufuse_embed_text(target file symbol)
#
# adds to `target` a generated source that defines `ufuse::embedded::symbol`, a std::string_view of the file's text
# (`symbol.data()` ends with a NUL). `#include "embedded/symbol.h"` declares it. The file is relative to the calling
# folder, and the source is made anew when it changes. Run as a script (-P), this same file writes that source.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(READ "${INPUT}" text)
  # A compiler may limit one string literal to 64 KiB; adjacent literals are joined.
  set(literals "")
  string(LENGTH "${text}" length)
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${text}" ${begin} 8000 piece)
    string(APPEND literals "\n    R\"ufuse_text(${piece})ufuse_text\"")
    math(EXPR begin "${begin} + 8000")
  endwhile()
  file(WRITE "${OUTPUT}" "#include \"embedded/${SYMBOL}.h\"\n\nnamespace ufuse::embedded {\n\n"
       "constinit const std::string_view ${SYMBOL} =${literals};\n\n}  // namespace ufuse::embedded\n")
  return()
endif()

set(UFUSE_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(ufuse_embed_text target file symbol)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    return()  # a folder whose sources do not exist yet
  endif()
  set(input "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(header "${folder}/embedded/${symbol}.h")
  set(source "${folder}/embedded/${symbol}.cpp")
  file(CONFIGURE OUTPUT "${header}" @ONLY CONTENT
"// The text of @file@, see cmake/UfuseEmbedText.cmake.
#pragma once
#include <string_view>

namespace ufuse::embedded {
extern const std::string_view @symbol@;
}  // namespace ufuse::embedded
")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${source}" -DSYMBOL=${symbol} -P "${UFUSE_EMBED_SCRIPT}"
    DEPENDS "${input}" "${UFUSE_EMBED_SCRIPT}"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
  target_include_directories(${target} PUBLIC "${folder}")
endfunction()
