#include "reports/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "absl/time/civil_time.h"
#include "reports/report_types.h"

namespace kvstore::reports {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kMaxStepMs = int64_t{36'525} * kDayMs;

struct UnitName {
  std::string_view name;
  Step::Unit unit;
  int64_t factor;
  int64_t about_ms;  // of one, to bound the whole
};
constexpr std::array<UnitName, 8> kUnits = {{
    {"d", Step::Unit::kDays, 1, kDayMs},
    {"h", Step::Unit::kMilliseconds, 3'600'000, 3'600'000},
    {"m", Step::Unit::kMilliseconds, 60'000, 60'000},
    {"s", Step::Unit::kMilliseconds, 1'000, 1'000},
    {"ms", Step::Unit::kMilliseconds, 1, 1},
    {"w", Step::Unit::kWeeks, 1, 7 * kDayMs},
    {"mo", Step::Unit::kMonths, 1, 30 * kDayMs},
    {"y", Step::Unit::kMonths, 12, 365 * kDayMs},
}};

int64_t FloorTo(int64_t value, int64_t multiple) {
  const int64_t rest = value % multiple;
  return value - (rest < 0 ? rest + multiple : rest);
}

int64_t MsOf(absl::Time time) { return absl::ToUnixMillis(time); }
int64_t Midnight(absl::CivilDay day, const absl::TimeZone& zone) { return MsOf(absl::FromCivil(day, zone)); }
absl::CivilDay DayOf(int64_t time, const absl::TimeZone& zone) {
  return absl::CivilDay(absl::ToCivilSecond(absl::FromUnixMillis(time), zone));
}

int64_t MonthNumber(absl::CivilMonth month) { return month - absl::CivilMonth(1970, 1); }

/// The first day of the calendar's step that has this day.
absl::CivilDay FirstDay(const Step& step, absl::CivilDay day) {
  const absl::CivilDay epoch(1970, 1, 1);
  switch (step.unit) {
    case Step::Unit::kWeeks: {
      const absl::CivilDay monday(1969, 12, 29);
      return monday + FloorTo(day - monday, 7 * step.count);
    }
    case Step::Unit::kMonths: {
      const int64_t month = FloorTo(MonthNumber(absl::CivilMonth(day)), step.count);
      return absl::CivilDay(absl::CivilMonth(1970, 1) + month);
    }
    default:
      return epoch + FloorTo(day - epoch, step.count);
  }
}

absl::CivilDay NextDay(const Step& step, absl::CivilDay day) {
  switch (step.unit) {
    case Step::Unit::kWeeks:
      return day + 7 * step.count;
    case Step::Unit::kMonths:
      return absl::CivilDay(absl::CivilMonth(day) + step.count);
    default:
      return day + step.count;
  }
}

/// abseil keeps every name that it was asked for, also of zones that there are none of, for as long as the
/// process lives. So it is asked for names of files only, which are not endless.
bool HasZoneFile(const std::string& name) {
  const char* folder = std::getenv("TZDIR");
  std::error_code ignored;
  return std::filesystem::is_regular_file(
      std::filesystem::path(folder == nullptr ? "/usr/share/zoneinfo" : folder) / name, ignored);
}

/// The number that some digits make; -1 if one of them is none.
int DigitsAt(std::string_view text, size_t at, size_t count) {
  int number = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

/// The time of a date, or of a text of the form 2013-01-31T05:00:00Z: what files mostly have. nullopt for any
/// other text, which may be a time as well.
std::optional<int64_t> FastTime(std::string_view text, const absl::TimeZone& zone) {
  const bool is_date = text.size() == 10;
  const bool is_time =
      text.size() == 20 && text[10] == 'T' && text[13] == ':' && text[16] == ':' && text[19] == 'Z';
  if ((!is_date && !is_time) || text[4] != '-' || text[7] != '-') return std::nullopt;
  const int year = DigitsAt(text, 0, 4);
  const int month = DigitsAt(text, 5, 2);
  const int day = DigitsAt(text, 8, 2);
  if (year < 1970 || month < 1 || day < 1) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  if (is_date && zone != absl::UTCTimeZone()) {
    const int64_t midnight = Midnight(absl::CivilDay(year, month, day), zone);
    return midnight < 0 ? std::nullopt : std::optional(midnight);
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  if (is_date) return days * kDayMs;
  const int hour = DigitsAt(text, 11, 2);
  const int minute = DigitsAt(text, 14, 2);
  const int second = DigitsAt(text, 17, 2);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return std::nullopt;
  return days * kDayMs + ((hour * 60 + minute) * 60 + second) * int64_t{1000};
}

absl::Status TooManySteps(size_t max_steps) {
  return absl::ResourceExhaustedError(
      fmt::format("step: the range has more than {} steps, which is the limit; ask for a longer step or a "
                  "shorter range",
                  max_steps));
}

}  // namespace

absl::StatusOr<Step> ParseStep(std::string_view text) {
  int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit_name(rest, static_cast<size_t>(text.data() + text.size() - rest));
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const UnitName& known) { return known.name == unit_name; });
  if (error != std::errc() || unit == kUnits.end() || count < 1 || count > kMaxStepMs / unit->about_ms) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is not a stretch of time: give a whole number from 1 and a unit (ms, s, m, h, d, w, "
        "mo, y), no more than 100 years",
        text));
  }
  return Step{unit->unit, count * unit->factor};
}

absl::Status CheckStep(const Step& step) {
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const UnitName& known) {
    return known.unit == step.unit && known.factor == 1;
  });
  if (unit != kUnits.end() && step.count >= 1 && step.count <= kMaxStepMs / unit->about_ms)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a count of {}: give a stretch of time from 1 ms to 100 years", step.count));
}

std::optional<int64_t> FixedLength(const Step& step) {
  switch (step.unit) {
    case Step::Unit::kMilliseconds:
      return step.count;
    case Step::Unit::kDays:
      return step.count * kDayMs;
    case Step::Unit::kWeeks:
      return step.count * 7 * kDayMs;
    case Step::Unit::kMonths:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string StepText(uint64_t ms) {
  for (const UnitName& unit : kUnits) {
    const auto length = static_cast<uint64_t>(unit.about_ms);
    if (unit.unit <= Step::Unit::kDays && ms % length == 0)
      return fmt::format("{}{}", ms / length, unit.name);
  }
  return fmt::format("{}ms", ms);
}

absl::StatusOr<absl::TimeZone> LoadZone(const std::string& name) {
  if (name == "UTC") return absl::UTCTimeZone();
  // A name is a path below the folder of zone data; nobody may name another file by it.
  const bool harmless = !name.empty() && name.front() != '/' && name.front() != ':' &&
                        name.find("..") == std::string::npos && name.find('\0') == std::string::npos &&
                        name.size() <= 64;
  absl::TimeZone zone;
  if (!harmless || !HasZoneFile(name) || !absl::LoadTimeZone(name, &zone)) {
    return absl::InvalidArgumentError(fmt::format(
        "timezone: this machine knows no zone '{}'; give an IANA name such as Europe/Berlin, or UTC", name));
  }
  return zone;
}

absl::StatusOr<int64_t> ParseTimeText(std::string_view text, const absl::TimeZone& zone) {
  if (const auto fast = FastTime(text, zone)) return *fast;
  const absl::string_view given(text.data(), text.size());
  absl::CivilDay day;
  absl::Time time;
  std::string error;
  const bool digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (digit && text.size() == 10 && absl::ParseCivilTime(given, &day)) {
    time = absl::FromCivil(day, zone);
  } else if (!digit || !absl::ParseTime(absl::RFC3339_full, given, &time, &error)) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a time: give RFC 3339 (2013-01-31T05:00:00Z), a date (2013-01-31), or "
                    "milliseconds since 1970",
                    text));
  }
  const int64_t ms = MsOf(time);
  if (ms < 0 || ms > kMaxTimeMs) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not a time from 1970 to 9999", text));
  }
  return ms;
}

int64_t Shift(int64_t time, const Step& step, int64_t count, const absl::TimeZone& zone) {
  if (step.unit == Step::Unit::kMilliseconds) return time + step.count * count;
  const int64_t below_second = ((time % 1000) + 1000) % 1000;
  const absl::CivilSecond at = absl::ToCivilSecond(absl::FromUnixMillis(time), zone);
  const int64_t amount = step.count * count;
  absl::CivilSecond shifted;
  if (step.unit == Step::Unit::kMonths) {
    // Out of range days are carried over to the next month by the constructor.
    const absl::CivilMonth month = absl::CivilMonth(at) + amount;
    shifted = absl::CivilSecond(month.year(), month.month(), at.day(), at.hour(), at.minute(), at.second());
  } else {
    const int64_t days = step.unit == Step::Unit::kWeeks ? 7 * amount : amount;
    shifted = absl::CivilSecond(at.year(), at.month(), at.day() + days, at.hour(), at.minute(), at.second());
  }
  return MsOf(absl::FromCivil(shifted, zone)) + below_second;
}

StepGrid StepGrid::Whole(int64_t from, int64_t to) {
  StepGrid grid;
  if (from < to) grid.starts_.push_back(from);
  return grid;
}

absl::StatusOr<StepGrid> StepGrid::Make(const Step& step, const absl::TimeZone& zone, int64_t from,
                                        int64_t to, size_t max_steps) {
  StepGrid grid;
  if (from >= to) return grid;
  if (step.unit == Step::Unit::kMilliseconds) {
    const int64_t offset = zone.At(absl::FromUnixMillis(from)).offset * int64_t{1000};
    const int64_t first = FloorTo(from + offset, step.count) - offset;
    if (static_cast<uint64_t>(to - first) / static_cast<uint64_t>(step.count) >= max_steps + 1) {
      return TooManySteps(max_steps);
    }
    for (int64_t start = first; start < to; start += step.count) grid.starts_.push_back(start);
  } else {
    absl::CivilDay day = FirstDay(step, DayOf(from, zone));
    for (int64_t start = Midnight(day, zone); start < to; start = Midnight(day, zone)) {
      // A day that a zone has skipped altogether starts when the next one does.
      if (!grid.starts_.empty() && grid.starts_.back() >= start) grid.starts_.pop_back();
      grid.starts_.push_back(start);
      if (grid.starts_.size() > max_steps) return TooManySteps(max_steps);
      day = NextDay(step, day);
    }
  }
  if (grid.starts_.size() > max_steps) return TooManySteps(max_steps);
  return grid;
}

size_t StepGrid::IndexOf(int64_t time, size_t hint) const {
  if (starts_[hint] <= time) {
    // Points of a series come in ascending order: the step is this one or one of the next.
    for (size_t tries = 0; tries < 4; ++tries, ++hint) {
      if (hint + 1 == starts_.size() || time < starts_[hint + 1]) return hint;
    }
  }
  const auto behind = std::upper_bound(starts_.begin(), starts_.end(), time);
  return behind == starts_.begin() ? 0 : static_cast<size_t>(behind - starts_.begin()) - 1;
}

void StepGrid::Divide(std::span<const int64_t> times, int64_t from, int64_t to,
                      std::vector<StepRun>& runs) const {
  runs.clear();
  const auto index_of = [&](int64_t time) {
    return static_cast<size_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  const size_t end = index_of(to);
  size_t step = 0;
  for (size_t i = index_of(from); i < end; ++i) {
    step = IndexOf(times[i], step);
    if (runs.empty() || runs.back().step != step) runs.push_back({.step = step, .begin = i, .end = i});
    runs.back().end = i + 1;
  }
}

}  // namespace kvstore::reports
