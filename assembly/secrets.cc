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
constexpr std::array<std::string_view, 5> kSecrets = {"password", "auth", "zookeeper_auth", "token",
                                                      "webhook"};

/// Returns the path without links and "..", behind which the folders above it could not be seen; unchanged if
/// that is not possible.
fs::path Resolved(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved;
}

/// Adds the files with secrets that `json`, a value of the configuration `file`, names at any depth, and
/// `file` itself if a secret stands in it.
///
/// folder  The one at which relative paths start.
void Collect(const Json& json, const fs::path& file, const fs::path& folder, std::set<fs::path>& found) {
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    Collect(value, file, folder, found);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
    const fs::path named = Resolved(folder / value.get_ref<const std::string&>());
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

/// Whether other users have these permissions on the path, which is Resolved, and can enter all folders above
/// it.
bool OthersMay(const fs::path& path, fs::perms wanted) {
  if (!HasPermissions(path, wanted)) return false;
  for (fs::path folder = path.parent_path();; folder = folder.parent_path()) {
    if (!HasPermissions(folder, fs::perms::others_exec)) return false;
    if (folder == folder.parent_path()) return true;
  }
}

/// Whether other users can write to the file, or replace it: in a folder that they may write to and that is
/// not sticky.
bool OthersCanChange(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return OthersMay(path, fs::perms::others_write) ||
         (OthersMay(folder, fs::perms::others_write | fs::perms::others_exec) &&
          !HasPermissions(folder, fs::perms::sticky_bit));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExposedSecrets(const fs::path& file, const Config& config) {
  const auto text = ReadFile(file);
  if (!text.ok()) return text.status();
  const auto json = ParseJson(*text);
  if (!json.ok()) return json.status();
  const fs::path configuration = Resolved(fs::absolute(file));
  std::set<fs::path> files;
  Collect(*json, configuration, fs::absolute(file).parent_path(), files);
  std::vector<std::string> exposed;
  for (const fs::path& path : files) {
    if (!OthersMay(path, fs::perms::others_read)) continue;
    exposed.push_back(fmt::format("{} has a secret, and every user of this machine can read it: chmod o= {}",
                                  path.string(), path.string()));
  }
  const fs::path data = Resolved(fs::absolute(config.store.data));
  if (OthersMay(data, fs::perms::others_exec)) {
    exposed.push_back(
        fmt::format("{} has what is stored, and every user of this machine can look into it: chmod o= {}",
                    data.string(), data.string()));
  }
  // Whoever can change these decides who may do what.
  std::set<fs::path> deciding = {configuration};
  for (const fs::path& named : {config.server.tokens, config.server.tls.client_ca}) {
    if (!named.empty()) deciding.insert(Resolved(fs::absolute(named)));
  }
  for (const fs::path& path : deciding) {
    if (!OthersCanChange(path)) continue;
    exposed.push_back(
        fmt::format("{} says who may do what, and every user of this machine can change or replace it: chmod "
                    "o-w {} {}",
                    path.string(), path.string(), path.parent_path().string()));
  }
  return exposed;
}

}  // namespace kvstore
