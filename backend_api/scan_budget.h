#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Bounds how many cells a thread's reads examine without finding anything. A scan for a column that no row
/// has examines every cell of the dataset; a server that runs it must be able to stop in between, to serve
/// its other callers.
namespace kvstore {

/// While it lives, scans that this thread makes examine about `cells` cells in all. When they are used up and
/// nothing has been found, RowCursor::Next, RowScan::Next and UnitScan::Next return a PausedError. Called
/// again, they continue where they stopped; markers and positions are up to date. Without a budget scans are
/// never paused. A page of a row of an embedded engine ends, perhaps empty, after about so many cells, too. A
/// budget inside another one replaces it until it ends.
class ScanBudget {
 public:
  explicit ScanBudget(uint64_t cells);
  ~ScanBudget();
  ScanBudget(const ScanBudget&) = delete;
  ScanBudget& operator=(const ScanBudget&) = delete;

 private:
  const std::optional<uint64_t> before_;
};

/// Takes `cells` from this thread's budget. Costs nothing where there is none.
void SpendScanBudget(uint64_t cells);
/// Whether this thread has a budget, and all of it is spent.
bool IsScanBudgetSpent();
/// Returns what is left of this thread's budget; UINT64_MAX if it has none.
uint64_t ScanBudgetLeft();
/// Whether this thread has a budget.
bool HasScanBudget();

/// The error (RESOURCE_EXHAUSTED) of a scan whose budget is spent.
///
/// position  where the scan continues; empty for scans that report their position in another way.
absl::Status PausedError(std::string_view position = {});
bool IsPaused(const absl::Status& status);
/// Returns the position of a PausedError; empty for other errors.
std::string PausedAt(const absl::Status& status);

}  // namespace kvstore
