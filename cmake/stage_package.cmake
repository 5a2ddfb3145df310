# How does a build folder become importable?
#
# Mirrors the package's Python files (FROM) as links into the build folder (TO), beside the freshly built `_core`.
# So an edited .py file is live at once, and each build (dev, sanitizers, Debian) has a package of its own. Links to
# files that no longer exist are removed. Called after each build of `_core`.

cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE files RELATIVE "${FROM}" "${FROM}/*.py" "${FROM}/*.pyi" "${FROM}/py.typed")
foreach(file IN LISTS files)
  get_filename_component(folder "${TO}/${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${FROM}/${file}" "${TO}/${file}" SYMBOLIC)
endforeach()
file(GLOB_RECURSE staged RELATIVE "${TO}" "${TO}/*.py" "${TO}/*.pyi")
foreach(file IN LISTS staged)
  if(NOT file IN_LIST files)
    file(REMOVE "${TO}/${file}")
  endif()
endforeach()
