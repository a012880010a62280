#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// How much the calls of a thread may look at without finding anything, for whoever has others to serve
/// meanwhile: a scan for a column that no row has looks at all cells, and would keep its thread until it has.
namespace kvstore {

/// Scans that this thread makes while it lives may look at about so many cells: then RowCursor::Next,
/// RowScan::Next and UnitScan::Next answer with a PausedError if they have found nothing. Called again, they
/// go on where they were; markers and positions are up to date. Calls without a scope are never paused. A
/// scope inside another replaces it.
class LookScope {
 public:
  explicit LookScope(uint64_t cells);
  ~LookScope();
  LookScope(const LookScope&) = delete;
  LookScope& operator=(const LookScope&) = delete;

 private:
  const std::optional<uint64_t> before_;
};

/// So many cells were looked at. Costs nothing without a scope.
void SpendLooks(uint64_t cells);
/// Whether a scope is there, and used up.
bool LooksSpent();
/// Whether a scope is there.
bool LooksAreLimited();

/// What a scan answers in a scope that is used up.
///
/// position  where it goes on, for scans that are not asked for it in another way.
absl::Status PausedError(std::string_view position = {});
bool IsPaused(const absl::Status& status);
/// The position of a PausedError; empty for others.
std::string PausedAt(const absl::Status& status);

}  // namespace kvstore
