#include "backup/log_prune.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/log_segment.h"
#include "backup/parallel.h"
#include "base/fail_point.h"

namespace kvstore::backup {

absl::StatusOr<PrunedLog> PruneLog(BlobStore& blobs, const std::set<std::string>& needed, uint64_t now_ms) {
  const auto all = ListAll(blobs, kLogPrefix);
  if (!all.ok()) return all.status();
  std::map<std::string, std::vector<const BlobEntry*>> chains;
  for (const BlobEntry& blob : *all) {
    const auto [chain, number] = PartsOfSegment(blob.name);
    if (!chain.empty()) chains[std::string(chain)].push_back(&blob);
  }
  std::vector<const BlobEntry*> over;
  PrunedLog pruned;
  for (auto chain = chains.begin(); chain != chains.end(); ++chain) {
    // A chain continues its own backup, and those after that, until another chain begins.
    const auto next = std::next(chain);
    const auto backup = needed.lower_bound(chain->first);
    if (backup != needed.end() && (next == chains.end() || *backup < next->first)) continue;
    const auto is_young = [now_ms](const BlobEntry* segment) {
      return segment->modified_ms + kGraceMs > now_ms;
    };
    if (std::any_of(chain->second.begin(), chain->second.end(), is_young)) continue;
    over.insert(over.end(), chain->second.begin(), chain->second.end());
  }
  for (const BlobEntry* segment : over) {
    ++pruned.segments;
    pruned.bytes += segment->size;
  }
  const absl::Status deleted = InParallel(over.size(), kDeleted, [&](size_t i) {
    Reached("prune-segment");
    return blobs.Delete(over[i]->name);
  });
  if (!deleted.ok()) return deleted;
  return pruned;
}

}  // namespace kvstore::backup
