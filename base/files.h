#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvstore {

/// Writes `text` to a new file that takes the place of `path`, durably: a crash leaves the old file or the
/// new one. Only its owner can read it. It is written as `path` with ".new" behind it, which is removed first
/// if there is one, and if it is a link is not followed. RESOURCE_EXHAUSTED when the disk is full, else
/// UNAVAILABLE with the reason; `path` is then unchanged.
absl::Status ReplaceFile(const std::filesystem::path& path, std::string_view text);

/// All of a file. NOT_FOUND if there is none; else UNAVAILABLE with the reason, also for a directory.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path);

/// "cannot ACTION PATH: REASON" for an errno: RESOURCE_EXHAUSTED when the disk or quota is full, else
/// UNAVAILABLE.
absl::Status FileError(const std::filesystem::path& path, std::string_view action, int error);

}  // namespace kvstore
