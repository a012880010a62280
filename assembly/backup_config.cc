#include "assembly/backup_config.h"

#include <string_view>

#include "assembly/config_fields.h"
#include "base/duration.h"

namespace kvstore {
namespace {

constexpr uint64_t kMinEveryMs = 60'000;
constexpr uint64_t kMaxEveryMs = uint64_t{365} * 86'400'000;

/// A slower backup of any store of some size would not end within its day.
constexpr uint64_t kMinBytesPerS = uint64_t{64} << 10;
constexpr uint64_t kMaxBytesPerS = uint64_t{1} << 40;

uint64_t ReadEvery(JsonFields& fields) {
  const auto text = fields.OptionalString("every");
  if (!text) return 0;
  const auto every = ParseUnits(*text);
  if (!every.ok() || *every < kMinEveryMs || *every > kMaxEveryMs) {
    fields.Fail("every", "must be a duration such as \"1d\", \"6h\" or \"1h30m\", 1m to 365d");
    return 0;
  }
  return *every;
}

std::string ReadUrl(JsonFields& fields, const std::filesystem::path& folder) {
  constexpr std::string_view kFile = "file:";
  constexpr std::string_view kBucket = "s3://";
  std::string url = fields.String("to");
  if (url.starts_with(kFile) && url.size() > kFile.size()) {
    return std::string(kFile) + (folder / url.substr(kFile.size())).string();
  }
  if (!url.empty() && (!url.starts_with(kBucket) || url.size() == kBucket.size())) {
    fields.Fail("to", "must be file:DIR, s3://BUCKET or s3://BUCKET/PREFIX");
  }
  return url;
}

}  // namespace

BackupConfig ReadBackupConfig(JsonFields& fields, const std::filesystem::path& folder) {
  BackupConfig backup{.to = ReadUrl(fields, folder), .every_ms = ReadEvery(fields)};
  ReadUint(fields, "keep", 1, 100'000, backup.keep);
  backup.log = fields.OptionalBool("log").value_or(false);
  ReadUint(fields, "bytes_per_s", kMinBytesPerS, kMaxBytesPerS, backup.bytes_per_s);
  backup.s3.endpoint = fields.OptionalString("endpoint").value_or("");
  backup.s3.region = fields.OptionalString("region").value_or("");
  backup.s3.credentials_file = PathIn(fields, "credentials_file", folder);
  return backup;
}

}  // namespace kvstore
