#include "backup/log_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "backup/list.h"
#include "backup/log_chain.h"
#include "backup/log_segment.h"
#include "base/fail_point.h"
#include "base/files.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// One run of ReplayLog.
class LogReplay {
 public:
  /// began_ms  when the backup began.
  LogReplay(BlobStore& blobs, uint64_t began_ms, uint64_t at_ms, WriteReplay& replay, Replayed& replayed)
      : blobs_(blobs), began_ms_(began_ms), at_ms_(at_ms), replay_(replay), replayed_(replayed) {}

  absl::Status Run(const std::vector<std::string>& names) {
    // Those that end with the store's last change may have a schema that is newer than the backup's, without
    // a write.
    const auto first = FindFirstSegment(blobs_, names, replay_.Last());
    if (!first.ok()) return first.status();
    if (auto status = AdoptSchema(names, *first); !status.ok()) return status;
    std::string previous;
    replayed_.at_end = true;
    for (size_t i = *first; i < names.size(); ++i) {
      const auto fetched = FetchSegment(blobs_, names[i]);
      if (!fetched.ok()) return fetched.status();
      const LogSegment& segment = fetched->segment;
      if (i > *first && segment.previous != previous) {
        return absl::DataLossError(
            fmt::format("{}: a segment before it is missing, or is another one", names[i]));
      }
      previous = fetched->sha256;
      if (IsInBackup(segment)) continue;
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

  /// The schema that the store has at the end; null: it is still that of the backup.
  const LogSchema* schema() const { return schema_.families.empty() ? nullptr : &schema_; }

 private:
  /// Whether the backup has all of a segment. It may have a newer schema, too.
  bool IsInBackup(const LogSegment& segment) const { return segment.marks.back().at_ms < began_ms_; }
  bool IsWhole(const LogSegment& segment) const { return segment.marks.back().at_ms <= at_ms_; }

  /// Gives the store the families that it has at the end, before any write. Those of the segment that a write
  /// is in may lack the write's own, or have one whose name is later that of another.
  ///
  /// first  the place of the first segment that is carried out.
  absl::Status AdoptSchema(const std::vector<std::string>& names, size_t first) {
    // The first segment that is not carried out to its end; times ascend in a chain.
    size_t end = names.size();
    for (size_t low = first; low < end;) {
      const size_t middle = low + (end - low) / 2;
      const auto fetched = FetchSegment(blobs_, names[middle]);
      if (!fetched.ok() && !absl::IsDataLoss(fetched.status())) return fetched.status();
      // A damaged one is taken for a later one: if it is not, Run finds it.
      if (fetched.ok() && IsWhole(fetched->segment)) {
        low = middle + 1;
      } else {
        end = middle;
      }
    }
    for (; end > first; --end) {
      auto fetched = FetchSegment(blobs_, names[end - 1]);
      if (!fetched.ok()) return fetched.status();
      if (IsInBackup(fetched->segment)) break;
      if (fetched->segment.schema_is_later) continue;
      schema_ = std::move(fetched->segment.schema);
      return replay_.Adopt(schema_);
    }
    return absl::OkStatus();
  }

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

absl::StatusOr<BackupBefore> FindBackupBefore(BlobStore& blobs, uint64_t at_ms) {
  const auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  absl::Status problem;
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    auto manifest = ReadManifest(blobs, *id);
    const absl::Status& read = manifest.status();
    if (absl::IsNotFound(read)) continue;  // pruned meanwhile
    // One that cannot be read keeps nobody from an older one.
    if (absl::IsDataLoss(read) || absl::IsFailedPrecondition(read)) {
      if (problem.ok()) problem = read;
      continue;
    }
    if (!manifest.ok()) return read;
    if (manifest->finished_ms <= at_ms)
      return BackupBefore{*std::move(manifest), std::string(problem.message())};
  }
  if (!problem.ok()) return problem;
  return absl::NotFoundError(
      fmt::format("there is no backup in {} that was finished by then; kv backup list shows "
                  "those that there are",
                  blobs.url()));
}

absl::StatusOr<Replayed> ReplayLog(const Manifest& base, BlobStore& blobs, uint64_t at_ms,
                                   const fs::path& folder, const ReplayOpener& open) {
  Replayed replayed{.as_of_ms = base.began_ms, .at_end = true};
  const auto names = ListLogChain(blobs, base.id);
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
