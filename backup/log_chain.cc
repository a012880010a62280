#include "backup/log_chain.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "backup/list.h"
#include "blobstore/sha256.h"

namespace kvstore::backup {
namespace {

/// A segment may be larger than kSegmentBytes by its last write and its schema.
constexpr uint64_t kMaxSegmentBytes = kBlobPieceBytes;

}  // namespace

absl::StatusOr<std::vector<std::string>> ListLogChain(BlobStore& blobs, const std::string& backup) {
  const auto all = ListAll(blobs, kLogPrefix);
  if (!all.ok()) return all.status();
  // The IDs of chains are those of backups, which sort by time: the last chain that began by this backup.
  std::string chain;
  std::map<uint64_t, std::string> segments;
  for (const BlobEntry& blob : *all) {
    const auto [of, number] = PartsOfSegment(blob.name);
    if (of.empty() || of > backup || of < chain) continue;
    if (of > chain) segments.clear();
    chain = of;
    segments.emplace(number, blob.name);
  }
  std::vector<std::string> names;
  for (auto& [number, name] : segments) names.push_back(std::move(name));
  return names;
}

absl::StatusOr<FetchedSegment> FetchSegment(BlobStore& blobs, const std::string& name) {
  const auto bytes = blobs.Get(name, kMaxSegmentBytes);
  if (absl::IsNotFound(bytes.status()))
    return absl::DataLossError(fmt::format("{}: a segment of the log is missing", name));
  if (!bytes.ok()) return bytes.status();
  auto segment = DecodeSegment(*bytes, name);
  if (!segment.ok()) return segment.status();
  return FetchedSegment{*std::move(segment), Hex(Sha256Of(*bytes))};
}

absl::StatusOr<size_t> FindFirstSegment(BlobStore& blobs, const std::vector<std::string>& names,
                                        uint64_t change) {
  size_t low = 0;
  size_t high = names.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const auto fetched = FetchSegment(blobs, names[middle]);
    if (!fetched.ok()) return fetched.status();
    if (fetched->segment.last < change) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace kvstore::backup
