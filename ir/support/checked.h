// Does this build look for our own mistakes? Debug builds and those with sanitizers do, as
// cmake/UfuseBuild.cmake says: what one part of ufuse hands to the next is verified there.
#pragma once

namespace ufuse {

#ifdef UFUSE_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

}  // namespace ufuse
