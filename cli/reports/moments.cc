#include "cli/reports/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "absl/time/civil_time.h"
#include "reports/report_types.h"
#include "reports/steps.h"

namespace kvstore::cli {
namespace {

constexpr int64_t kEndOfTime = reports::kMaxTimeMs + 1;

bool AreDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

absl::Status Outside(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format("'{}' is not a time from 1970 to 9999", text));
}

absl::StatusOr<int64_t> InTime(std::string_view text, int64_t time) {
  if (time < 0 || time > kEndOfTime) return Outside(text);
  return time;
}

absl::StatusOr<int64_t> ParseMs(std::string_view digits) {
  int64_t ms = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ms);
  if (error != std::errc()) return Outside(digits);
  return InTime(digits, ms);
}

/// Midnight of the day that is so many days after today.
int64_t Midnight(int64_t now, int days, const absl::TimeZone& zone) {
  const absl::CivilDay today(absl::ToCivilSecond(absl::FromUnixMillis(now), zone));
  return absl::ToUnixMillis(absl::FromCivil(today + days, zone));
}

}  // namespace

absl::StatusOr<int64_t> ParseMoment(std::string_view text, int64_t now, const absl::TimeZone& zone) {
  if (text == "now") return now;
  if (text == "today") return Midnight(now, 0, zone);
  if (text == "yesterday") return Midnight(now, -1, zone);
  if (AreDigits(text)) return ParseMs(text);
  if (text.starts_with('-') || text.starts_with('+')) {
    if (const auto step = reports::ParseStep(text.substr(1)); step.ok()) {
      return InTime(text, reports::Shift(now, *step, text.front() == '-' ? -1 : 1, zone));
    }
  } else if (const auto time = reports::ParseTimeText(text, zone); time.ok()) {
    return *time;
  }
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is not a time from 1970 to 9999: give a date (2013-01-31), RFC 3339 (2013-01-31T05:00:00Z), "
      "milliseconds since 1970, now, today, yesterday, or a stretch of time before now (-7d, -36h)",
      text));
}

std::string Rfc3339(int64_t time, const absl::TimeZone& zone) {
  const bool utc = zone == absl::UTCTimeZone();
  return absl::FormatTime(utc ? "%Y-%m-%d%ET%H:%M:%E*SZ" : "%Y-%m-%d%ET%H:%M:%E*S%Ez",
                          absl::FromUnixMillis(time), zone);
}

MomentFormat::MomentFormat(std::span<const int64_t> times, const absl::TimeZone& zone) : zone_(zone) {
  bool has_time = false;
  bool has_seconds = false;
  for (const int64_t time : times) {
    const absl::CivilSecond at = absl::ToCivilSecond(absl::FromUnixMillis(time), zone);
    has_seconds = has_seconds || at.second() != 0 || time % 1000 != 0;
    has_time = has_time || has_seconds || at != absl::CivilSecond(absl::CivilDay(at));
  }
  format_ = "%Y-%m-%d";
  if (has_time) format_ += has_seconds ? " %H:%M:%E*S" : " %H:%M";
  if (has_time && zone != absl::UTCTimeZone()) format_ += " %Ez";
}

std::string MomentFormat::operator()(int64_t time) const {
  return absl::FormatTime(format_, absl::FromUnixMillis(time), zone_);
}

absl::StatusOr<int64_t> PointTimes::Read(std::string_view text) {
  if (!last_text_.empty() && text == last_text_) return last_;
  const auto time = AreDigits(text) ? ParseMs(text) : reports::ParseTimeText(text, zone_);
  if (!time.ok()) return time.status();
  last_ = *time;
  last_text_.assign(text);
  return last_;
}

}  // namespace kvstore::cli
