#include "cli/amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include "base/clock.h"
#include "base/duration.h"

namespace kvstore::cli {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool AreDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

/// Converts digits to a number; none if that takes more than 64 bits.
std::optional<uint64_t> Number(std::string_view digits) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

absl::Status Beyond(std::string_view text, uint64_t max, std::string_view unit) {
  return absl::InvalidArgumentError(fmt::format("'{}' is beyond the limit of {}{}", text, max, unit));
}

/// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// Reads `count` digits. If they are not there, returns 0, and good() is false from then on.
  uint64_t Digits(size_t count) {
    const std::string_view digits = rest_.substr(0, count);
    if (digits.size() < count || !AreDigits(digits)) {
      good_ = false;
      return 0;
    }
    rest_.remove_prefix(count);
    return *Number(digits);
  }
  void Expect(char c) { good_ = Accept(c) && good_; }
  bool Accept(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool good() const { return good_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

absl::Status NoTime(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("'{}': {}; give milliseconds since 1970 as a whole number, or a date in UTC: 2026-01-01, "
                  "2026-01-01T12:30:00Z, now, today, yesterday, or a duration before now: -7d",
                  text, why));
}

/// Returns a validator that replaces the given text by the number that CLI11 then reads.
template <typename Parse>
CLI::Validator Replace(Parse parse) {
  return CLI::Validator(
      [parse](std::string& text) {
        const absl::StatusOr<uint64_t> number = parse(text);
        if (!number.ok()) return std::string(number.status().message());
        text = std::to_string(*number);
        return std::string();
      },
      "");
}

}  // namespace

absl::StatusOr<uint64_t> ParseWhole(std::string_view text, uint64_t max) {
  if (!AreDigits(text)) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a whole number, 0 or more, in decimal digits", text));
  }
  const std::optional<uint64_t> number = Number(text);
  if (!number || *number > max) return Beyond(text, max, "");
  return *number;
}

absl::StatusOr<uint64_t> ParseDuration(std::string_view text, uint64_t max) {
  const bool is_plain = AreDigits(text);
  const std::optional<uint64_t> plain = is_plain ? Number(text) : std::nullopt;
  const auto ms = is_plain ? absl::StatusOr<uint64_t>(plain.value_or(0)) : ParseUnits(text);
  if (absl::IsInvalidArgument(ms.status())) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}': give a whole number of milliseconds, or a duration with units: 500ms, 10s, 5m, 1h30m, 30d, 2w",
        text));
  }
  if (!ms.ok() || (is_plain && !plain) || *ms > max) return Beyond(text, max, " ms");
  return *ms;
}

absl::StatusOr<uint64_t> ParseTime(std::string_view text, uint64_t now_ms) {
  if (AreDigits(text)) {
    const std::optional<uint64_t> number = Number(text);
    if (!number) return Beyond(text, std::numeric_limits<uint64_t>::max(), "");
    return *number;
  }
  constexpr uint64_t kDayMs = 86'400'000;
  const uint64_t today = now_ms - now_ms % kDayMs;
  if (text == "now") return now_ms;
  if (text == "today") return today;
  if (text == "yesterday") return today - kDayMs;
  if (text.starts_with('-')) {
    const auto before = ParseUnits(text.substr(1));
    if (absl::IsInvalidArgument(before.status())) {
      return NoTime(
          text, AreDigits(text.substr(1)) ? "a time is not negative" : "what follows the - is no duration");
    }
    if (!before.ok() || *before > now_ms) return NoTime(text, "it is before 1970");
    return now_ms - *before;
  }
  Reader reader(text);
  const auto year = static_cast<int>(reader.Digits(4));
  reader.Expect('-');
  const auto month = static_cast<unsigned>(reader.Digits(2));
  reader.Expect('-');
  const auto day = static_cast<unsigned>(reader.Digits(2));
  uint64_t hour = 0;
  uint64_t minute = 0;
  uint64_t second = 0;
  uint64_t ms = 0;
  bool utc = true;
  if (reader.good() && !reader.AtEnd()) {
    reader.Expect('T');
    hour = reader.Digits(2);
    reader.Expect(':');
    minute = reader.Digits(2);
    if (reader.Accept(':')) {
      second = reader.Digits(2);
      if (reader.Accept('.')) ms = reader.Digits(3);
    }
    utc = reader.Accept('Z');
  }
  if (!reader.good() || (utc && !reader.AtEnd())) return NoTime(text, "not a time");
  if (!utc) return NoTime(text, "it is not said to be in UTC, by a Z at its end");
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return NoTime(text, "there is no such day");
  if (hour > 23 || minute > 59 || second > 59) return NoTime(text, "there is no such time of a day");
  if (year < 1970) return NoTime(text, "it is before 1970");
  const auto days = static_cast<uint64_t>(std::chrono::sys_days(date).time_since_epoch().count());
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms;
}

CLI::Option* TakeDuration(CLI::Option* option, uint64_t max) {
  return option->transform(Replace([max](std::string_view text) { return ParseDuration(text, max); }))
      ->type_name("MS|10s|1h30m|30d");
}

CLI::Option* TakeTime(CLI::Option* option) {
  return option->transform(Replace([](std::string_view text) { return ParseTime(text, WallClockMs()); }))
      ->type_name("MS|DATE")
      ->description(option->get_description() +
                    ". In milliseconds since 1970, or a date in UTC: 2026-01-01, 2026-01-01T12:30:00Z, now, "
                    "today, yesterday, -7d");
}

CLI::Option* AtMost(CLI::Option* option, uint64_t max) {
  return option->check(Replace([max](std::string_view text) { return ParseWhole(text, max); }));
}

void RefuseBadNumbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    // UINT is CLI11's type name for unsigned numbers; ID and BYTES are our type names for some of them.
    const std::string type = option->get_type_name();
    const std::string_view kind = std::string_view(type).substr(0, type.find(':'));
    if (kind != "UINT" && kind != "ID" && kind != "BYTES") continue;
    option->transform(Replace([](std::string_view text) { return ParseWhole(text); }));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseBadNumbers(*command);
  }
}

}  // namespace kvstore::cli
