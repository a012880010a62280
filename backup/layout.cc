#include "backup/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>

namespace kvstore::backup {
namespace {

/// The form of an ID: '0' stands for a decimal digit, 'x' for a hexadecimal one.
constexpr std::string_view kForm = "00000000T000000Z-xxxxxxxx";
constexpr std::string_view kManifestEnd = ".json";

/// The digits of an ID that are its time.
constexpr size_t kTimeBytes = std::string_view("00000000T000000Z").size();
/// The last time that an ID can have: 9999-12-31.
constexpr std::time_t kLastTime = 253'402'300'799;

bool Fits(char c, char form) {
  const bool is_digit = c >= '0' && c <= '9';
  if (form == '0') return is_digit;
  if (form == 'x') return is_digit || (c >= 'a' && c <= 'f');
  return c == form;
}

std::string TimeText(std::time_t seconds) {
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday,
                     time.tm_hour, time.tm_min, time.tm_sec);
}

/// The time in an ID, in seconds since 1970; 0 if it has the form of an ID and is no time.
std::time_t TimeOf(std::string_view id) {
  const auto number = [id](size_t at, size_t digits) {
    int value = 0;
    for (const char c : id.substr(at, digits)) value = value * 10 + (c - '0');
    return value;
  };
  std::tm time{};
  time.tm_year = number(0, 4) - 1900;
  time.tm_mon = number(4, 2) - 1;
  time.tm_mday = number(6, 2);
  time.tm_hour = number(9, 2);
  time.tm_min = number(11, 2);
  time.tm_sec = number(13, 2);
  const std::time_t seconds = ::timegm(&time);
  return TimeText(seconds) == id.substr(0, kTimeBytes) ? seconds : 0;
}

}  // namespace

std::string NewBackupId(uint64_t now_ms, std::string_view newest) {
  auto seconds = static_cast<std::time_t>(now_ms / 1000);
  if (CheckBackupId(newest).ok()) {
    const std::time_t after = TimeOf(newest) + 1;
    // No ID sorts after one of the last second of all.
    if (after <= kLastTime) seconds = std::max(seconds, after);
  }
  return fmt::format("{}-{:08x}", TimeText(seconds), std::random_device{}());
}

absl::Status CheckBackupId(std::string_view id) {
  if (id.size() == kForm.size() && std::equal(id.begin(), id.end(), kForm.begin(), Fits)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "backup: an ID looks like 20261124T031459Z-1a2b3c4d; kv backup list shows those that there are");
}

std::string ManifestBlob(std::string_view id) {
  return fmt::format("{}{}{}", kManifestPrefix, id, kManifestEnd);
}

std::string_view IdOfManifest(std::string_view blob) {
  if (!blob.starts_with(kManifestPrefix) || !blob.ends_with(kManifestEnd)) return "";
  const std::string_view id =
      blob.substr(kManifestPrefix.size(), blob.size() - kManifestPrefix.size() - kManifestEnd.size());
  return CheckBackupId(id).ok() ? id : "";
}

std::string RemovedBlob(std::string_view id) { return fmt::format("{}{}", kRemovedPrefix, id); }

std::string TableBlob(std::string_view unique_id) {
  return fmt::format("{}table-{}", kObjectPrefix, unique_id);
}

std::string FileBlob(std::string_view checksum) { return fmt::format("{}file-{}", kObjectPrefix, checksum); }

std::string_view IdentityOf(std::string_view object) { return object.substr(0, object.find('.')); }

}  // namespace kvstore::backup
