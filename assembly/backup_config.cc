#include "assembly/backup_config.h"

#include <string_view>

#include "absl/time/time.h"
#include "assembly/config_fields.h"

namespace kvstore {
namespace {

constexpr absl::Duration kMinEvery = absl::Minutes(1);
constexpr absl::Duration kMaxEvery = absl::Hours(24 * 365);

/// A slower backup of any store of some size would not end within its day.
constexpr uint64_t kMinBytesPerS = uint64_t{64} << 10;
constexpr uint64_t kMaxBytesPerS = uint64_t{1} << 40;

uint64_t ReadEvery(JsonFields& fields) {
  const auto text = fields.OptionalString("every");
  if (!text) return 0;
  absl::Duration every;
  if (!absl::ParseDuration(*text, &every) || every < kMinEvery || every > kMaxEvery) {
    fields.Fail("every", "must be a duration such as \"6h\", \"30m\" or \"1h30m\", 1m to 8760h");
    return 0;
  }
  return static_cast<uint64_t>(absl::ToInt64Milliseconds(every));
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
