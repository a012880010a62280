#include "backup/log_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/log_segment.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "blobstore/sha256.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// A segment may be larger than kSegmentBytes by its last write and its schema.
constexpr uint64_t kMaxSegmentBytes = kBlobPieceBytes;

/// The segments of the chain that a backup is in, by their numbers, ascending; empty if there is none.
absl::StatusOr<std::vector<std::string>> ChainOf(BlobStore& blobs, const std::string& backup) {
  const auto all = ListAll(blobs, kLogPrefix);
  if (!all.ok()) return all.status();
  // The IDs of chains are those of backups, which sort by time: the last chain that began by this backup.
  std::string chain;
  std::map<uint64_t, std::string> segments;
  for (const BlobEntry& blob : *all) {
    const auto [of, number] = PartsOfSegment(blob.name);
    if (of.empty() || of > backup || of < chain) continue;
    if (of > chain) segments.clear();
    chain = of;
    segments.emplace(number, blob.name);
  }
  std::vector<std::string> names;
  for (auto& [number, name] : segments) names.push_back(std::move(name));
  return names;
}

/// A segment and the checksum of its bytes.
struct Fetched {
  LogSegment segment;
  std::string sha256;
};

absl::StatusOr<Fetched> Fetch(BlobStore& blobs, const std::string& name) {
  const auto bytes = blobs.Get(name, kMaxSegmentBytes);
  if (absl::IsNotFound(bytes.status()))
    return absl::DataLossError(fmt::format("{}: a segment of the log is missing", name));
  if (!bytes.ok()) return bytes.status();
  auto segment = DecodeSegment(*bytes, name);
  if (!segment.ok()) return segment.status();
  return Fetched{*std::move(segment), Hex(Sha256Of(*bytes))};
}

/// One run of ReplayLog.
class LogReplay {
 public:
  /// began_ms  when the backup began.
  LogReplay(BlobStore& blobs, uint64_t began_ms, uint64_t at_ms, WriteReplay& replay, Replayed& replayed)
      : blobs_(blobs), began_ms_(began_ms), at_ms_(at_ms), replay_(replay), replayed_(replayed) {}

  /// Returns the place of the first segment that does not end before the store's last change. Those that end
  /// with it may have a schema that is newer than the backup's, without a write.
  absl::StatusOr<size_t> FindFirst(const std::vector<std::string>& names) const {
    size_t low = 0;
    size_t high = names.size();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      const auto fetched = Fetch(blobs_, names[middle]);
      if (!fetched.ok()) return fetched.status();
      if (fetched->segment.last < replay_.Last()) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  absl::Status Run(const std::vector<std::string>& names) {
    auto first = FindFirst(names);
    if (!first.ok()) return first.status();
    std::string previous;
    replayed_.at_end = true;
    for (size_t i = *first; i < names.size(); ++i) {
      const auto fetched = Fetch(blobs_, names[i]);
      if (!fetched.ok()) return fetched.status();
      const LogSegment& segment = fetched->segment;
      if (i > *first && segment.previous != previous) {
        return absl::DataLossError(
            fmt::format("{}: a segment before it is missing, or is another one", names[i]));
      }
      previous = fetched->sha256;
      // The backup has all of it, and may have a newer schema.
      if (segment.marks.back().at_ms < began_ms_) continue;
      if (segment.after > replay_.Last()) {
        return absl::DataLossError(fmt::format("{}: what the log has before it is missing", names[i]));
      }
      Reached("replay-segment");
      bool is_cut = false;
      if (auto status = Apply(segment, is_cut); !status.ok()) return status;
      ++replayed_.segments;
      if (is_cut) {
        replayed_.at_end = false;
        break;
      }
    }
    return absl::OkStatus();
  }

  /// The schema of the last segment that was carried out to its end; null: it is still that of the backup.
  const LogSchema* schema() const { return schema_.families.empty() ? nullptr : &schema_; }

 private:
  absl::Status Apply(const LogSegment& segment, bool& is_cut) {
    const auto behind = std::find_if(segment.marks.begin(), segment.marks.end(),
                                     [this](const LogMark& mark) { return mark.at_ms > at_ms_; });
    is_cut = behind != segment.marks.end();
    if (behind == segment.marks.begin()) return absl::OkStatus();  // all of it is later
    const LogMark& mark = *std::prev(behind);
    const uint64_t limit = is_cut ? mark.last : segment.last;
    const auto is_there = [this](const LoggedWrite& write) { return write.last() <= replay_.Last(); };
    const auto begin = std::find_if_not(segment.writes.begin(), segment.writes.end(), is_there);
    const auto end = std::find_if(begin, segment.writes.end(),
                                  [&](const LoggedWrite& write) { return write.last() > limit; });
    // The schema is that of the segment's end: a dataset that was dropped after that time must stay, with
    // what was written to it until then.
    if (!is_cut) {
      if (auto status = replay_.Adopt(segment.schema); !status.ok()) return status;
      schema_ = segment.schema;
    }
    if (auto status = replay_.Apply({begin, end}); !status.ok()) return status;
    replayed_.writes += static_cast<uint64_t>(end - begin);
    // The last mark may be of a write that is in the next segment only.
    for (auto whole = segment.marks.begin(); whole != behind && whole->last <= segment.last; ++whole) {
      replayed_.as_of_ms = std::max(replayed_.as_of_ms, whole->at_ms);
    }
    // Nothing was written between the two marks around the time.
    if (is_cut && behind->last == mark.last && mark.last <= segment.last) {
      replayed_.as_of_ms = std::max(replayed_.as_of_ms, at_ms_);
    }
    return absl::OkStatus();
  }

  BlobStore& blobs_;
  const uint64_t began_ms_;
  const uint64_t at_ms_;
  WriteReplay& replay_;
  Replayed& replayed_;
  LogSchema schema_;
};

/// Replaces the files that say what the data is.
absl::Status WriteFiles(const Manifest& base, const fs::path& folder, const LogSchema& schema) {
  std::error_code error;
  for (const BackedUpFile& file : base.files) {
    const bool is_data = file.path == "KVSTORE" || file.path.starts_with("rocksdb/");
    if (!is_data && !schema.files.contains(file.path)) fs::remove(folder / file.path, error);
  }
  for (const auto& [path, text] : schema.files) {
    fs::create_directories((folder / path).parent_path(), error);
    if (auto status = ReplaceFile(folder / path, text); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Manifest> BackupBefore(BlobStore& blobs, uint64_t at_ms) {
  const auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    auto manifest = ReadManifest(blobs, *id);
    if (absl::IsNotFound(manifest.status())) continue;  // pruned meanwhile
    if (!manifest.ok() || manifest->finished_ms <= at_ms) return manifest;
  }
  return absl::NotFoundError(
      fmt::format("there is no backup in {} that was finished by then; kv backup list shows "
                  "those that there are",
                  blobs.url()));
}

absl::StatusOr<Replayed> ReplayLog(const Manifest& base, BlobStore& blobs, uint64_t at_ms,
                                   const fs::path& folder, const ReplayOpener& open) {
  Replayed replayed{.as_of_ms = base.began_ms, .at_end = true};
  const auto names = ChainOf(blobs, base.id);
  if (!names.ok()) return names.status();
  if (names->empty()) return replayed;
  const auto replay = open(folder);
  if (!replay.ok()) return replay.status();
  LogReplay run(blobs, base.began_ms, at_ms, **replay, replayed);
  if (auto status = run.Run(*names); !status.ok()) return status;
  if (auto status = (*replay)->Finish(); !status.ok()) return status;
  if (run.schema() == nullptr) return replayed;
  if (auto status = WriteFiles(base, folder, *run.schema()); !status.ok()) return status;
  return replayed;
}

}  // namespace kvstore::backup
