#include "base/duration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

namespace kvstore {
namespace {

struct Unit {
  std::string_view name;
  uint64_t ms;
};
constexpr std::array<Unit, 6> kUnits = {
    {{"w", 604'800'000}, {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::StatusOr<uint64_t> ParseUnits(std::string_view text) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  uint64_t ms = 0;
  const auto* next = kUnits.begin();  // the largest unit that may follow
  if (text.empty()) return absl::InvalidArgumentError("");
  while (!text.empty()) {
    const auto digits =
        static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
    const auto letters = static_cast<size_t>(std::find_if(text.begin() + static_cast<std::ptrdiff_t>(digits),
                                                          text.end(), IsDigit) -
                                             text.begin()) -
                         digits;
    const auto* const unit = std::find_if(
        next, kUnits.end(), [&](const Unit& one) { return one.name == text.substr(digits, letters); });
    if (digits == 0 || unit == kUnits.end()) return absl::InvalidArgumentError("");
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
    if (error != std::errc() || number > (kMax - ms) / unit->ms) return absl::OutOfRangeError("");
    ms += number * unit->ms;
    next = unit + 1;
    text.remove_prefix(digits + letters);
  }
  return ms;
}

}  // namespace kvstore
