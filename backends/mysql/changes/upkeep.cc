#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "backends/mysql/changes/changes.h"

/// Counts what the change stream of a process holds open, and closes what nobody uses any more.
namespace kvstore::mysql {
namespace {

/// How often it is looked for connections that nobody uses any more.
constexpr std::chrono::seconds kTidyInterval{5};

}  // namespace

bool Changes::IsMapped(const Host& host) const {
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    for (const ShardRange& range : fleet_->map(space).ranges()) {
      if (range.master == host) return true;
    }
  }
  return false;
}

void Changes::CloseUnused() {
  std::vector<std::shared_ptr<HostLog>> left;  // their ends wait for their threads
  std::vector<std::shared_ptr<HostLog>> kept;  // to close a connection may take a while
  {
    const MutexLock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now < tidy_at_) return;
    tidy_at_ = now + kTidyInterval;
    for (auto at = logs_.begin(); at != logs_.end();) {
      if (at->second->IsInUse() || IsMapped(at->first)) {
        kept.push_back(at->second);
        ++at;
        continue;
      }
      left.push_back(std::move(at->second));
      oldest_.erase(at->first);
      at = logs_.erase(at);
    }
  }
  for (const auto& log : kept) log->CloseParked();
  asks_.Forget([this](const Host& host) { return IsMapped(host); });
}

size_t Changes::hosts() const {
  const MutexLock lock(mutex_);
  return std::max(logs_.size(), asks_.threads());
}

Changes::Pages Changes::pages() const {
  Pages pages;
  const MutexLock lock(mutex_);
  for (const auto& [host, log] : logs_) {
    pages.shared += log->shared_pages();
    pages.own += log->own_pages();
  }
  return pages;
}

}  // namespace kvstore::mysql
