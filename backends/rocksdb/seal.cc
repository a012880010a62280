#include "backends/rocksdb/seal.h"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "base/files.h"

namespace kvstore::rocks {
namespace {

std::string Read(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The name of the manifest in force.
std::string CurrentManifest(const std::filesystem::path& database) {
  std::string name = Read(database / "CURRENT");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

std::string Describe(const std::filesystem::path& database, const std::string& manifest) {
  const std::string bytes = Read(database / manifest);
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return fmt::format("{} size {} crc32 {:08x}\n", manifest, bytes.size(), crc.checksum());
}

}  // namespace

absl::Status WriteSeal(const std::filesystem::path& seal, const std::filesystem::path& database) {
  return ReplaceFile(seal, Describe(database, CurrentManifest(database)));
}

absl::Status CheckSeal(const std::filesystem::path& seal, const std::filesystem::path& database) {
  const std::string sealed = Read(seal);
  const std::string manifest = CurrentManifest(database);
  if (!sealed.starts_with(manifest + " ")) return absl::OkStatus();
  const std::string found = Describe(database, manifest);
  if (found == sealed) return absl::OkStatus();
  return absl::DataLossError(fmt::format("{} is damaged: it was closed as '{}' and is now '{}'",
                                         (database / manifest).string(), sealed.substr(0, sealed.find('\n')),
                                         found.substr(0, found.find('\n'))));
}

}  // namespace kvstore::rocks
