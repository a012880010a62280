#include "fleet_backup/log_spool.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "fleet_backup/binlog.h"
#include "fleet_backup/binlog_chains.h"
#include "kvstore_api/call_scope.h"
#include "shardops/gtid.h"

namespace kvstore::fleet_backup {
namespace {

namespace fs = std::filesystem;

/// A file has about so many bytes, so that it can be read at once.
constexpr size_t kSpoolFileBytes = size_t{64} << 20;

std::string TimeText(uint64_t at_ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(at_ms / 1000)));
}

/// Writes transactions to files, one after another.
class SpoolWriter {
 public:
  SpoolWriter(fs::path folder, SpooledLog& log) : folder_(std::move(folder)), log_(log) {}

  void SetFormat(std::string_view bytes) { format_ = bytes; }
  absl::Status Add(const BinlogGroup& group) {
    if (file_.empty()) file_ = kBinlogMagic;
    if (written_format_ != format_) file_ += written_format_ = format_;
    file_ += group.bytes;
    ++log_.transactions;
    log_.bytes += group.bytes.size();
    return file_.size() < kSpoolFileBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    if (file_.empty()) return absl::OkStatus();
    fs::path path = folder_ / fmt::format("{:06}.binlog", log_.files.size() + 1);
    if (auto status = ReplaceFile(path, file_); !status.ok()) return status;
    log_.files.push_back(std::move(path));
    file_.clear();
    written_format_.clear();
    return absl::OkStatus();
  }

 private:
  const fs::path folder_;
  SpooledLog& log_;
  std::string format_;
  std::string written_format_;  // in the file
  std::string file_;
};

/// One run of SpoolLog.
class Spool {
 public:
  Spool(const backup::Manifest& base, uint64_t at_ms, const fs::path& folder)
      : at_s_(at_ms / 1000), position_(base.server->gtid), writer_(folder, log_) {
    log_.as_of_ms = base.began_ms;
  }

  absl::Status Run(BlobStore& blobs, const std::vector<BinlogChain>& chains) {
    for (const BinlogChain& chain : chains) {
      bool is_first = true;
      const absl::Status read =
          ReadChain(blobs, chain, [&](const BinlogSegment& segment) -> absl::StatusOr<bool> {
            if (auto status = CheckCall(); !status.ok()) return status;
            if (std::exchange(is_first, false)) {
              if (auto status = CheckNoGap(segment); !status.ok()) return status;
            }
            if (auto status = Add(segment); !status.ok()) return status;
            return log_.at_end;
          });
      if (!read.ok()) return read;
      if (!log_.at_end) break;
    }
    log_.last = position_.ToString();
    if (!log_.at_end) log_.as_of_ms = at_s_ * 1000;
    return writer_.Flush();
  }
  SpooledLog Take() { return std::move(log_); }

 private:
  /// Checks that nothing is missing before a chain.
  absl::Status CheckNoGap(const BinlogSegment& first) const {
    const std::string position = position_.ToString();
    if (shardops::CountMissing(first.after, position) == 0) return absl::OkStatus();
    // A transaction that was not sent may have been committed in the same second as the last one that was.
    const std::string latest =
        log_.transactions == 0 ? std::string("before the gap there is the backup itself, without --at")
                               : fmt::format("the latest time before it is --at {}", TimeText(log_.as_of_ms));
    return absl::FailedPreconditionError(fmt::format(
        "at: the binary log has a gap: what was committed after {} (GTID {}) was not sent up to {} (GTID "
        "{}), since "
        "the server had purged it; {}, and each backup that was made after the gap can be restored",
        TimeText(log_.as_of_ms), position, TimeText(first.first_ms), first.after, latest));
  }

  absl::Status Add(const BinlogSegment& segment) {
    const absl::Status read = ReadGroups(
        segment.log,
        [this](std::string_view bytes) {
          writer_.SetFormat(bytes);
          return absl::OkStatus();
        },
        [this](const BinlogGroup& group) -> absl::Status {
          if (!log_.at_end || position_.Has(group.gtid)) return absl::OkStatus();
          // The log is cut in front of the first one that is too late, so that what is there is a state that
          // the server had.
          if (group.seconds >= at_s_) {
            log_.at_end = false;
            return absl::OkStatus();
          }
          position_.Add(group.gtid);
          log_.as_of_ms = std::max(log_.as_of_ms, uint64_t{group.seconds} * 1000);
          return writer_.Add(group);
        });
    if (!read.ok()) return read;
    const bool is_over = segment.transactions == 0 && segment.first_ms / 1000 >= at_s_;
    if (log_.at_end && !is_over && !segment.nodes.empty()) log_.nodes = segment.nodes;
    return absl::OkStatus();
  }

  const uint64_t at_s_;
  shardops::GtidPosition position_;
  SpooledLog log_;
  SpoolWriter writer_;
};

}  // namespace

absl::StatusOr<SpooledLog> SpoolLog(BlobStore& blobs, const backup::Manifest& base, uint64_t at_ms,
                                    const fs::path& folder) {
  const auto chains = ListChainsAfter(blobs, base.id);
  if (!chains.ok()) return chains.status();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FileError(folder, "create", error.value());
  Spool spool(base, at_ms, folder);
  if (auto status = spool.Run(blobs, *chains); !status.ok()) return status;
  return spool.Take();
}

absl::Status TrimLog(const SpooledLog& log, const std::string& position) {
  const shardops::GtidPosition has(position);
  for (const fs::path& file : log.files) {
    const auto bytes = ReadFile(file);
    if (!bytes.ok()) return bytes.status();
    std::string kept(kBinlogMagic);
    bool is_trimmed = false;
    const absl::Status read = ReadGroups(
        std::string_view(*bytes).substr(kBinlogMagic.size()),
        [&](std::string_view format) {
          kept += format;
          return absl::OkStatus();
        },
        [&](const BinlogGroup& group) {
          if (has.Has(group.gtid)) {
            is_trimmed = true;
          } else {
            kept += group.bytes;
          }
          return absl::OkStatus();
        });
    if (!read.ok()) return read;
    // The server has a part of the log from its beginning on, and nothing after that.
    if (!is_trimmed) return absl::OkStatus();
    if (auto status = ReplaceFile(file, kept); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore::fleet_backup
