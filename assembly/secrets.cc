#include "assembly/secrets.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/files.h"
#include "json/json.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

/// The fields of a configuration that hold secrets. NAME_file holds the name of a file with the secret.
constexpr std::array<std::string_view, 4> kSecrets = {"password", "auth", "zookeeper_auth", "token"};

/// Adds the files with secrets that `json`, a value of the configuration `file`, names at any depth, and
/// `file` itself if a secret stands in it.
void Collect(const Json& json, const fs::path& file, std::set<fs::path>& found) {
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    Collect(value, file, found);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
    const fs::path named = file.parent_path() / value.get_ref<const std::string&>();
    for (const std::string_view secret : kSecrets) {
      if (name == secret) found.insert(file);
      if (name == fmt::format("{}_file", secret)) found.insert(named);
    }
    // Only a "tls" has a field "key", the file with the private key, and only a "backup" the other.
    if (name == "key" || name == "credentials_file") found.insert(named);
  }
}

bool HasPermissions(const fs::path& path, fs::perms wanted) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !error && (status.permissions() & wanted) == wanted;
}

/// Whether other users have these permissions on the path and can enter all folders above it.
bool OthersMay(const fs::path& path, fs::perms wanted) {
  if (!HasPermissions(path, wanted)) return false;
  for (fs::path folder = path.parent_path();; folder = folder.parent_path()) {
    if (!HasPermissions(folder, fs::perms::others_exec)) return false;
    if (folder == folder.parent_path()) return true;
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExposedSecrets(const fs::path& file, const Config& config) {
  const auto text = ReadFile(file);
  if (!text.ok()) return text.status();
  const auto json = ParseJson(*text);
  if (!json.ok()) return json.status();
  std::set<fs::path> files;
  Collect(*json, fs::absolute(file), files);
  std::vector<std::string> exposed;
  for (const fs::path& path : files) {
    if (!OthersMay(path, fs::perms::others_read)) continue;
    exposed.push_back(fmt::format("{} has a secret, and every user of this machine can read it: chmod o= {}",
                                  path.string(), path.string()));
  }
  fs::path data = fs::absolute(config.store.data).lexically_normal();
  if (!data.has_filename()) data = data.parent_path();
  if (OthersMay(data, fs::perms::others_exec)) {
    exposed.push_back(
        fmt::format("{} has what is stored, and every user of this machine can look into it: chmod o= {}",
                    data.string(), data.string()));
  }
  return exposed;
}

}  // namespace kvstore
