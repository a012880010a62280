#include "blobstore/blob_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvstore {
namespace {

bool IsAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

/// Returns a name for a message; one that breaks the rules may be long and hold any bytes.
std::string Shown(std::string_view name) {
  std::string shown(name.substr(0, 100));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return !IsAllowed(c) && c != '/'; }, '?');
  return shown;
}

absl::Status Refused(std::string_view name, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("name of a blob '{}': {}", Shown(name), problem));
}

/// Checks what holds of all segments, and of one that is not complete yet.
absl::Status CheckSegment(std::string_view name, std::string_view segment) {
  if (segment.starts_with('.')) return Refused(name, "no part between '/' may begin with '.'");
  if (segment.size() > kMaxBlobSegmentBytes) {
    return Refused(name, fmt::format("a part between '/' has {} bytes; at most {} are allowed",
                                     segment.size(), kMaxBlobSegmentBytes));
  }
  if (!std::all_of(segment.begin(), segment.end(), IsAllowed)) {
    return Refused(name, "only letters, digits, '-', '_', '.' and '/' are allowed");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBlobPrefix(std::string_view prefix) {
  if (prefix.size() > kMaxBlobNameBytes) {
    return Refused(prefix,
                   fmt::format("it has {} bytes; at most {} are allowed", prefix.size(), kMaxBlobNameBytes));
  }
  std::string_view rest = prefix;
  for (size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    if (slash == 0) return Refused(prefix, "a part between '/' is empty");
    if (auto status = CheckSegment(prefix, rest.substr(0, slash)); !status.ok()) return status;
    rest.remove_prefix(slash + 1);
  }
  return CheckSegment(prefix, rest);
}

absl::Status CheckBlobName(std::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError("the name of a blob is empty");
  if (name.ends_with('/')) return Refused(name, "it may not end with '/'");
  return CheckBlobPrefix(name);
}

}  // namespace kvstore
