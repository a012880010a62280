#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

/// Times, time zones and steps of reports. Times are milliseconds since 1970.
namespace kvstore::reports {

/// A stretch of time: "500ms", "30s", "15m", "6h" have a fixed length; "1d", "2w", "3mo", "1y" are of the
/// calendar, so their length depends on where they begin and on the time zone.
struct Step {
  enum class Unit : uint8_t { kMilliseconds, kDays, kWeeks, kMonths };
  Unit unit = Unit::kMilliseconds;
  int64_t count = 1;
  friend bool operator==(const Step&, const Step&) = default;
};

/// INVALID_ARGUMENT unless the text is a whole number from 1 and a unit (ms, s, m, h, d, w, mo, y), together
/// no more than a hundred years.
absl::StatusOr<Step> ParseStep(std::string_view text);
/// INVALID_ARGUMENT unless the step is one that ParseStep could return: from 1, and no more than about a
/// hundred years.
absl::Status CheckStep(const Step& step);
/// A step of fixed length in ms, a day counted as 24 hours; nullopt for months and years.
std::optional<int64_t> FixedLength(const Step& step);
/// The shortest text that ParseStep reads as a step of so many milliseconds: "1h", "30d".
std::string StepText(uint64_t ms);

/// The zone of an IANA name ("Europe/Berlin", "UTC"); INVALID_ARGUMENT if this machine's zone data does not
/// have it.
absl::StatusOr<absl::TimeZone> LoadZone(const std::string& name);

/// An RFC 3339 time with its offset from UTC, or a date, which is midnight in `zone`. INVALID_ARGUMENT for
/// anything else, and for times outside of 1970..9999. Fast for dates, and for whole seconds of UTC.
absl::StatusOr<int64_t> ParseTimeText(std::string_view text, const absl::TimeZone& zone);

/// The time a step later than `time`, or earlier if `count` is negative. Steps of the calendar keep the local
/// time of day; days that a month does not have are carried over, so that 31 February is 3 March.
int64_t Shift(int64_t time, const Step& step, int64_t count, const absl::TimeZone& zone);

/// Neighbours in a list of times that fall into one step: those from begin to end, exclusive.
struct StepRun {
  size_t step = 0;
  size_t begin = 0;
  size_t end = 0;
};

/// The steps that cover [from, to).
class StepGrid {
 public:
  /// One step, which starts at `from`.
  static StepGrid Whole(int64_t from, int64_t to);
  /// Steps of the calendar start at local midnight: days counted from 1970-01-01, weeks on Mondays, months on
  /// the first. Shorter steps have the same length throughout, and are aligned to local midnight as the
  /// zone's offset has it at `from`. The first step may start before `from`.
  ///
  /// RESOURCE_EXHAUSTED if there are more than `max_steps`.
  static absl::StatusOr<StepGrid> Make(const Step& step, const absl::TimeZone& zone, int64_t from, int64_t to,
                                       size_t max_steps);

  size_t size() const { return starts_.size(); }
  int64_t start(size_t step) const { return starts_[step]; }
  /// The step that a time in [from, to) falls into. Fast if `hint`, any step, is the right one or shortly
  /// before it.
  size_t IndexOf(int64_t time, size_t hint) const;
  /// Divides times, which ascend, among the steps; those outside of [from, to), a part of the grid, are in
  /// none.
  void Divide(std::span<const int64_t> times, int64_t from, int64_t to, std::vector<StepRun>& runs) const;

 private:
  std::vector<int64_t> starts_;  // ascending
};

}  // namespace kvstore::reports
