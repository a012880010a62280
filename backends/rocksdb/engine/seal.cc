#include "backends/rocksdb/engine/seal.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "backends/rocksdb/engine/damage.h"
#include "base/files.h"

namespace kvstore::rocks {
namespace {

/// Two blocks of a log. RocksDB checks a record that lies before them, whatever follows it.
constexpr uint64_t kLogTail = uint64_t{64} << 10;

std::string Read(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

uint32_t Checksum(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string Describe(const std::filesystem::path& manifest) {
  const std::string bytes = Read(manifest);
  return fmt::format("{} size {} crc32 {:08x}", manifest.filename().string(), bytes.size(), Checksum(bytes));
}

std::string DescribeLog(const std::filesystem::path& log) {
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  if (!file) return fmt::format("{} is gone", log.filename().string());
  const auto size = static_cast<uint64_t>(file.tellg());
  std::string tail(std::min(size, kLogTail), '\0');
  file.seekg(static_cast<std::streamoff>(size - tail.size()));
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return fmt::format("{} size {} tail crc32 {:08x}", log.filename().string(), size, Checksum(tail));
}

/// Describes the logs that are not empty, in order of their names.
std::vector<std::string> DescribeLogs(const std::filesystem::path& database) {
  std::vector<std::string> logs;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(database, error)) {
    if (file.path().extension() != ".log" || file.file_size(error) == 0) continue;
    logs.push_back(DescribeLog(file.path()));
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

std::filesystem::path LogsOf(const std::filesystem::path& seal) { return seal.string() + ".logs"; }

/// The lines of SEAL.logs that are about logs; none if the file is for another manifest.
std::vector<std::string> SealedLines(const std::filesystem::path& seal,
                                     const std::filesystem::path& manifest) {
  std::vector<std::string> lines;
  std::ifstream logs(LogsOf(seal));
  std::string line;
  if (!std::getline(logs, line) || line != Describe(manifest)) return lines;
  while (std::getline(logs, line)) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string Differs(const std::filesystem::path& file, std::string_view sealed, std::string_view found) {
  return fmt::format("{} is damaged: it was closed as '{}' and is now '{}'", file.string(), sealed, found);
}

}  // namespace

std::filesystem::path CurrentManifest(const std::filesystem::path& database) {
  std::string name = Read(database / "CURRENT");
  if (name.ends_with('\n')) name.pop_back();
  return database / name;
}

std::vector<SealedLog> SealedLogs(const std::filesystem::path& seal, const std::filesystem::path& database) {
  std::vector<SealedLog> logs;
  for (const std::string& line : SealedLines(seal, CurrentManifest(database))) {
    std::istringstream words(line);
    SealedLog log;
    std::string word;
    words >> log.name >> word >> log.size;
    log.intact = DescribeLog(database / log.name) == line;
    logs.push_back(std::move(log));
  }
  return logs;
}

absl::Status RemoveSealOfLogs(const std::filesystem::path& seal) {
  std::error_code error;
  std::filesystem::remove(LogsOf(seal), error);
  return error ? FileError(LogsOf(seal), "remove", error.value()) : absl::OkStatus();
}

absl::Status WriteSeal(const std::filesystem::path& seal, const std::filesystem::path& database) {
  const std::string manifest = Describe(CurrentManifest(database));
  const std::string logs = fmt::format("{}\n{}\n", manifest, fmt::join(DescribeLogs(database), "\n"));
  if (auto status = ReplaceFile(LogsOf(seal), logs); !status.ok()) return status;
  return ReplaceFile(seal, manifest + "\n");
}

absl::Status CheckSeal(const std::filesystem::path& seal, const std::filesystem::path& database) {
  const std::filesystem::path manifest = CurrentManifest(database);
  const std::string begin = manifest.filename().string() + " ";
  for (const std::filesystem::path& file : {seal, LogsOf(seal)}) {
    std::ifstream sealed(file);
    std::string line;
    if (!std::getline(sealed, line) || !line.starts_with(begin)) continue;
    if (const auto found = Describe(manifest); found != line)
      return DamagedFileError(Differs(manifest, line, found));
  }
  for (const std::string& log : SealedLines(seal, manifest)) {
    const std::filesystem::path file = database / log.substr(0, log.find(' '));
    if (const auto found = DescribeLog(file); found != log) return DamagedLogError(Differs(file, log, found));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::rocks
