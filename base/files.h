#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvstore {

/// Replaces the file at `path` by one with `text`, durably: a crash leaves the old file or the new one. Only
/// the owner can read it. The text is first written to `path` with ".new" appended; a file or link of that
/// name is removed first, never followed. RESOURCE_EXHAUSTED if the disk is full, else UNAVAILABLE with the
/// reason; `path` is unchanged then.
absl::Status ReplaceFile(const std::filesystem::path& path, std::string_view text);

/// Renames a file, durably; one that has the new name already is replaced. Errors as FileError.
///
/// from, to  absolute paths in one folder.
absl::Status RenameFile(const std::filesystem::path& from, const std::filesystem::path& to);

/// Opens a file for writing, and makes it if there is none; only its owner can read one that is made. A link
/// of that name is refused, not followed. Returns the file descriptor, which the caller closes; UNAVAILABLE
/// with the reason.
///
/// flags  of open(2), besides those that follow from the above: O_APPEND, O_EXCL, O_TRUNC.
absl::StatusOr<int> OpenForWriting(const std::filesystem::path& path, int flags);

/// Writes all of a text to an open file. Errors as FileError.
///
/// path  for messages.
absl::Status WriteAll(int file, const std::filesystem::path& path, std::string_view text);

/// Returns the content of a file. NOT_FOUND if there is none; UNAVAILABLE with the reason if it cannot be
/// read, as for a directory.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path);

/// Makes an error "cannot ACTION PATH: REASON" from an errno: RESOURCE_EXHAUSTED if the disk or quota is
/// full, else UNAVAILABLE.
absl::Status FileError(const std::filesystem::path& path, std::string_view action, int error);

}  // namespace kvstore
