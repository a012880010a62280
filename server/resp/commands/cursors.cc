#include "server/resp/commands/cursors.h"

#include <utility>

namespace kvstore::server::resp {

uint64_t Cursors::Add(std::string_view caller, std::string what, std::string position) {
  const MutexLock lock(mutex_);
  auto found = callers_.find(caller);
  if (found == callers_.end()) found = callers_.emplace(std::string(caller), OfCaller()).first;
  OfCaller& own = found->second;
  uint64_t cursor = 0;
  // Some clients keep numbers in doubles, which are exact up to 53 bits.
  while (cursor == 0 || own.positions.contains(cursor)) cursor = random_() >> 11;
  own.positions.emplace(cursor, Position{.what = std::move(what), .position = std::move(position)});
  own.oldest_first.push_back(cursor);
  if (own.oldest_first.size() > kMostEach) {
    own.positions.erase(own.oldest_first.front());
    own.oldest_first.pop_front();
  }
  return cursor;
}

std::optional<std::string> Cursors::Find(std::string_view caller, uint64_t cursor,
                                         std::string_view what) const {
  const MutexLock lock(mutex_);
  const auto own = callers_.find(caller);
  if (own == callers_.end()) return std::nullopt;
  const auto found = own->second.positions.find(cursor);
  if (found == own->second.positions.end() || found->second.what != what) return std::nullopt;
  return found->second.position;
}

}  // namespace kvstore::server::resp
