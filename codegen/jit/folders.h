// Whom do the folders belong to in which machine code is kept and made?
//
// Who can replace a folder on the way to our code can put other code there. So a path is walked
// from "/" down, one folder at a time, each opened and checked on its descriptor: it belongs to
// root or to us, and nobody else can write in it, unless its sticky bit keeps others from replacing
// what is ours. Used by cache.cpp and work_folder.cpp.
#pragma once

#include <string>

#include "codegen/jit/files.h"

namespace ufuse::codegen {

struct Opened {
  Fd folder;            // for openat
  std::string trouble;  // in words, where there is no folder
};

// A folder for us alone: ours, closed to all others, not a link. It is made where it is missing,
// and its parents too.
Opened open_private_folder(const std::string& path);

// A folder in which we may make one, such as /tmp.
Opened open_shared_folder(const std::string& path);

}  // namespace ufuse::codegen
