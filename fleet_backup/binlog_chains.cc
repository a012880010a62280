#include "fleet_backup/binlog_chains.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "backup/list.h"
#include "backup/log_segment.h"

namespace kvstore::fleet_backup {
namespace {

/// The segments of chains by their numbers.
using Chains = std::map<std::string, std::map<uint64_t, std::string>, std::less<>>;

absl::StatusOr<Chains> ListSegments(BlobStore& blobs, const std::string& prefix) {
  const auto all = backup::ListAll(blobs, prefix);
  if (!all.ok()) return all.status();
  Chains chains;
  for (const BlobEntry& blob : *all) {
    const auto [chain, number] = backup::PartsOfSegment(blob.name);
    if (!chain.empty()) chains[std::string(chain)].emplace(number, blob.name);
  }
  return chains;
}

BinlogChain ToChain(const std::string& id, const std::map<uint64_t, std::string>& segments) {
  BinlogChain chain{.id = id, .segments = {}};
  for (const auto& [number, name] : segments) chain.segments.push_back(name);
  return chain;
}

}  // namespace

absl::StatusOr<BinlogChain> ListChain(BlobStore& blobs, const std::string& backup) {
  const auto chains = ListSegments(blobs, fmt::format("{}{}/", backup::kLogPrefix, backup));
  if (!chains.ok()) return chains.status();
  const auto chain = chains->find(backup);
  if (chain == chains->end()) return BinlogChain{.id = backup, .segments = {}};
  return ToChain(backup, chain->second);
}

absl::StatusOr<std::vector<BinlogChain>> ListChainsAfter(BlobStore& blobs, const std::string& backup) {
  const auto all = ListSegments(blobs, std::string(backup::kLogPrefix));
  if (!all.ok()) return all.status();
  // The IDs of chains are those of backups, which sort by time.
  auto first = all->upper_bound(backup);
  if (first != all->begin()) --first;
  std::vector<BinlogChain> chains;
  for (; first != all->end(); ++first) chains.push_back(ToChain(first->first, first->second));
  return chains;
}

absl::Status ReadChain(BlobStore& blobs, const BinlogChain& chain,
                       const std::function<absl::StatusOr<bool>(const BinlogSegment& segment)>& take) {
  std::string sha256;
  std::string last;
  for (size_t i = 0; i < chain.segments.size(); ++i) {
    const std::string& name = chain.segments[i];
    if (name != backup::SegmentBlob(chain.id, i + 1)) {
      return absl::DataLossError(fmt::format("{}: the segment of the log before it is missing", name));
    }
    const auto fetched = FetchBinlogSegment(blobs, name);
    if (!fetched.ok()) return fetched.status();
    const BinlogSegment& segment = fetched->segment;
    if (segment.previous != sha256 || (i > 0 && segment.after != last)) {
      return absl::DataLossError(fmt::format("{}: the segment of the log before it is another one", name));
    }
    sha256 = fetched->sha256;
    last = segment.last;
    const auto goes_on = take(segment);
    if (!goes_on.ok()) return goes_on.status();
    if (!*goes_on) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NodesAfter(BlobStore& blobs, const BinlogSegment& segment) {
  if (segment.nodes_in == 0) return std::string();
  if (segment.nodes_in == segment.number) return segment.nodes;
  auto fetched = FetchBinlogSegment(blobs, backup::SegmentBlob(segment.chain, segment.nodes_in));
  if (!fetched.ok()) return fetched.status();
  return std::move(fetched->segment.nodes);
}

}  // namespace kvstore::fleet_backup
