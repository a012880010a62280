#include "backup/log_verify.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backup/log_chain.h"
#include "backup/log_segment.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {
namespace {

/// Finds the numbers that a chain lacks from a segment on, and before the first one of all.
void CheckNumbers(const std::vector<std::string>& names, size_t first, Verified& verified) {
  uint64_t next = first == 0 ? 1 : 0;  // 0: any
  for (size_t i = first; i < names.size(); ++i) {
    const auto [chain, number] = PartsOfSegment(names[i]);
    if (next != 0 && number > next) {
      verified.problems.push_back(
          fmt::format("{}: segments of the log that are missing before it: {}", names[i], number - next));
    }
    next = number + 1;
  }
}

/// Reads a chain from a segment on.
absl::Status CheckSegments(BlobStore& blobs, const std::vector<std::string>& names, size_t first,
                           Verified& verified) {
  std::string previous;  // the checksum of the segment before; empty: it is not known
  for (size_t i = first; i < names.size(); ++i) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto fetched = FetchSegment(blobs, names[i]);
    if (absl::IsDataLoss(fetched.status())) {
      verified.problems.emplace_back(fetched.status().message());
      previous.clear();
      continue;
    }
    if (!fetched.ok()) return fetched.status();
    if (!previous.empty() && fetched->segment.previous != previous) {
      verified.problems.push_back(
          fmt::format("{}: a segment of the log before it is missing, or is another one", names[i]));
    }
    previous = fetched->sha256;
    for (const LoggedWrite& write : fetched->segment.writes) verified.read_bytes += write.bytes.size();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyLogChain(const Manifest& manifest, BlobStore& blobs, VerifyDepth depth,
                            Verified& verified) {
  if (manifest.dataset || manifest.server) return absl::OkStatus();
  const auto names = ListLogChain(blobs, manifest.id);
  if (!names.ok()) return names.status();
  verified.objects += names->size();
  const auto found = FindFirstSegment(blobs, *names, manifest.sequence);
  // A restore looks at the same segments to find the first one that it needs. Without it all are looked at.
  if (!found.ok() && !absl::IsDataLoss(found.status())) return found.status();
  const size_t first = found.value_or(0);
  CheckNumbers(*names, first, verified);
  return depth < VerifyDepth::kBytes ? absl::OkStatus() : CheckSegments(blobs, *names, first, verified);
}

}  // namespace kvstore::backup
