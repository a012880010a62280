#include "cli/export_place.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "blobstore/open_blob_store.h"
#include "export/manifest.h"

namespace kvstore::cli {
namespace {

constexpr std::string_view kFile = "file:";
constexpr std::string_view kBucket = "s3://";

}  // namespace

std::unique_ptr<BlobStore> OpenExports(const Globals& globals, const std::string& place) {
  S3Options s3;
  if (!globals.config.empty()) {
    if (const auto backup = OrFail(ReadConfig(globals.config)).backup) s3 = backup->s3;
  }
  const bool is_url = place.starts_with(kFile) || place.starts_with(kBucket);
  return OrFail(OpenBlobStore(is_url ? place : fmt::format("{}{}", kFile, place), s3));
}

ExportPlace FindExportPlace(std::string name) {
  const std::string given = name;
  while (name.ends_with('/')) name.pop_back();
  const bool is_bucket = name.starts_with(kBucket);
  if (name.starts_with(kFile)) name.erase(0, kFile.size());
  const size_t slash = name.rfind('/');
  ExportPlace found{.place = slash == std::string::npos ? "." : name.substr(0, slash),
                    .id = name.substr(slash == std::string::npos ? 0 : slash + 1)};
  if (found.place.empty()) found.place = "/";
  const auto none = [&](std::string_view problem) {
    return Failure{absl::NotFoundError(
        fmt::format("{} {}; name the folder of an export, which has a manifest.json, or a file .parquet",
                    given, problem))};
  };
  if (!exports::CheckExportId(found.id).ok() || found.place == "s3:/") throw none("is no name of an export");
  // Opening the place of exports would make the folder if it were not there.
  std::error_code error;
  const bool is_there =
      is_bucket ||
      std::filesystem::exists(std::filesystem::path(found.place) / found.id / "manifest.json", error);
  if (!is_there) throw none("is no export, or one that has not ended");
  return found;
}

}  // namespace kvstore::cli
