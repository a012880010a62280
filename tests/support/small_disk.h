#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <filesystem>

namespace kvstore::testing {

/// The exit code of a forked test that could not mount a file system, and is skipped.
inline constexpr int kCannotMount = 77;

/// Mounts a file system of 24 MB in memory on a folder, for this process and its children alone. Returns
/// false, with errno, where nobody may; call it in a forked process, which has no other threads.
inline bool MountSmallDisk(const std::filesystem::path& folder) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=24m") == 0;
}

}  // namespace kvstore::testing
