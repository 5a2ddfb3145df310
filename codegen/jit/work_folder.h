// Where is a kernel built?
//
// In a folder of its own, which is removed afterwards. A process that is killed leaves its folder
// behind; the owner of a folder that is in use holds a lock on it, so that the next process can
// tell, and removes the others. Used by jit.cpp and loader.cpp.
#pragma once

#include <string>

#include "codegen/jit/files.h"

namespace ufuse::codegen {

class WorkFolder {
 public:
  // False (and nothing made) where `parent` cannot be written, or others could replace our folder
  // there.
  explicit WorkFolder(const std::string& parent);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  explicit operator bool() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  const std::string& trouble() const { return trouble_; }  // in words, where it could not be made

 private:
  bool make();

  Fd parent_;
  Fd folder_;  // holds the lock
  std::string name_, path_, trouble_;
};

// Removes the folders that processes of ours left in `parent` when they were killed.
void remove_left_work_folders(const std::string& parent);

}  // namespace ufuse::codegen
