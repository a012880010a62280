#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

/// Times as people give and read them. All are milliseconds since 1970.
namespace kvstore::cli {

/// Reads a time: RFC 3339 (2013-01-31T05:00:00Z), a date, which is midnight in `zone`, a whole number of
/// milliseconds since 1970, "now", "today", "yesterday" (midnight in `zone`), or a stretch of time before or
/// after now: "-7d", "-36h", "+1d". Stretches of days or more keep the local time of day.
///
/// now  the time that "now" is.
///
/// INVALID_ARGUMENT for anything else, and for times outside of 1970..9999, except for the very beginning of
/// the year 10000, where a span may end.
absl::StatusOr<int64_t> ParseMoment(std::string_view text, int64_t now, const absl::TimeZone& zone);

/// RFC 3339: "2013-01-31T05:00:00Z", and with the zone's offset outside of UTC.
std::string Rfc3339(int64_t time, const absl::TimeZone& zone);

/// Writes times for people, no finer than some times need it: "2013-01-31", "2013-01-31 05:00"; outside of
/// UTC times of day have the zone's offset, because an hour comes twice when clocks are put back.
class MomentFormat {
 public:
  MomentFormat(std::span<const int64_t> times, const absl::TimeZone& zone);
  std::string operator()(int64_t time) const;

 private:
  const absl::TimeZone zone_;
  std::string format_;
};

/// Reads times of points in files. Fast where many neighbours have the same time.
/// Externally synchronised.
class PointTimes {
 public:
  /// zone  the zone of dates without a time.
  explicit PointTimes(const absl::TimeZone& zone) : zone_(zone) {}

  /// RFC 3339, a date, or milliseconds since 1970. INVALID_ARGUMENT for anything else.
  absl::StatusOr<int64_t> Read(std::string_view text);

 private:
  const absl::TimeZone zone_;
  std::string last_text_;  // empty: none
  int64_t last_ = 0;
};

}  // namespace kvstore::cli
