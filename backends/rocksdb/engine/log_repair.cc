#include "backends/rocksdb/engine/log_repair.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>
#include <map>
#include <string>

#include "backends/rocksdb/engine/log_scan.h"
#include "backends/rocksdb/engine/seal.h"
#include "base/files.h"

namespace kvstore::rocks {
namespace {

namespace fs = std::filesystem;

fs::path LeftOutFile(const DataDir& dir) { return dir.path() / "LEFT-OUT"; }

/// Syncs a file or folder to disk.
absl::Status Sync(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, "open", errno);
  const int synced = ::fsync(file);
  const int error = errno;
  ::close(file);
  return synced == 0 ? absl::OkStatus() : FileError(path, "sync", error);
}

/// All logs that exist now or existed at the last close, by number, with what the seal says of each.
std::map<uint64_t, std::optional<SealedLog>> AllLogs(const DataDir& dir) {
  std::map<uint64_t, std::optional<SealedLog>> logs;
  const auto number = [](const std::string& name) {
    uint64_t value = 0;
    std::from_chars(name.data(), name.data() + name.size(), value);
    return value;
  };
  std::error_code error;
  for (const auto& file : fs::directory_iterator(dir.rocksdb(), error)) {
    if (file.path().extension() == ".log") logs[number(file.path().filename())] = std::nullopt;
  }
  for (const SealedLog& log : SealedLogs(dir.seal(), dir.rocksdb())) logs[number(log.name)] = log;
  return logs;
}

/// When a file was written to, in ms since 1970; 0 if that is not known.
uint64_t WrittenAt(const fs::path& file) {
  std::error_code error;
  const auto at = fs::last_write_time(file, error);
  if (error) return 0;
  const auto since = std::chrono::file_clock::to_sys(at).time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

}  // namespace

absl::StatusOr<std::optional<LogDamage>> FindLogDamage(const DataDir& dir) {
  std::optional<LogDamage> damage;
  for (const auto& [number, sealed] : AllLogs(dir)) {
    const fs::path log = dir.rocksdb() / fmt::format("{:06}.log", number);
    const auto scan = ScanLog(log);
    if (!scan.ok() && !absl::IsNotFound(scan.status())) return scan.status();
    const LogScan found = scan.value_or(LogScan{});
    const uint64_t written_ms = WrittenAt(log);
    const uint64_t whole = std::max(found.size, sealed ? sealed->size : 0);
    if (damage) {
      if (found.size > 0) damage->later.push_back(log);
      damage->left_out += whole;
      damage->gone += whole - found.size;
      damage->changes += found.changes + found.changes_behind;
      damage->written_until_ms = std::max(damage->written_until_ms, written_ms);
    } else if (found.damaged || (sealed && !sealed->intact)) {
      damage = LogDamage{.log = log,
                         .missing = !scan.ok(),
                         .kept = found.good,
                         .left_out = whole - found.good,
                         .gone = whole - found.size,
                         .changes = found.changes_behind,
                         .written_until_ms = written_ms};
    }
  }
  return damage;
}

absl::StatusOr<fs::path> EndLogsAtDamage(const DataDir& dir, const LogDamage& damage) {
  fs::path folder;
  std::error_code error;
  if (!damage.missing || !damage.later.empty()) {
    folder = dir.path() / "left-out" /
             fmt::format("{:%Y%m%dT%H%M%S}-{}", fmt::gmtime(std::time(nullptr)), ::getpid());
    fs::create_directories(folder, error);
    if (error) return FileError(folder, "create", error.value());
  }
  if (!damage.missing) {
    const fs::path copy = folder / damage.log.filename();
    fs::copy_file(damage.log, copy, error);
    if (error) return FileError(copy, "write", error.value());
    if (auto status = Sync(copy); !status.ok()) return status;
  }
  const std::string left_out = fmt::format("{}\n", LeftOut(dir) + damage.left_out);
  if (auto status = ReplaceFile(LeftOutFile(dir), left_out); !status.ok()) return status;
  // Begin with the last: as long as the damage itself is there the store does not open, and no log is ever
  // read without those before it.
  for (auto log = damage.later.rbegin(); log != damage.later.rend(); ++log) {
    fs::rename(*log, folder / log->filename(), error);
    if (error) return FileError(*log, "move", error.value());
  }
  if (!folder.empty()) {
    for (const fs::path& changed : {folder, dir.rocksdb()}) {
      if (auto status = Sync(changed); !status.ok()) return status;
    }
  }
  if (!damage.missing) {
    fs::resize_file(damage.log, damage.kept, error);
    if (error) return FileError(damage.log, "cut", error.value());
    if (auto status = Sync(damage.log); !status.ok()) return status;
  }
  if (auto status = RemoveSealOfLogs(dir.seal()); !status.ok()) return status;
  if (auto status = Sync(dir.path()); !status.ok()) return status;
  return folder;
}

uint64_t LeftOut(const DataDir& dir) {
  const auto text = ReadFile(LeftOutFile(dir));
  uint64_t bytes = 0;
  if (text.ok()) std::from_chars(text->data(), text->data() + text->size(), bytes);
  return bytes;
}

absl::Status ClearLeftOut(const DataDir& dir) {
  std::error_code error;
  fs::remove(LeftOutFile(dir), error);
  return error ? FileError(LeftOutFile(dir), "remove", error.value()) : absl::OkStatus();
}

}  // namespace kvstore::rocks
