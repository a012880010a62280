#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backup/layout.h"
#include "backup/parallel.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/mutex.h"
#include "base/process.h"
#include "export/change_row_maker.h"
#include "export/lane.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::exports {
namespace {

/// How long the files of an export that has failed are removed, when the caller's time is over.
constexpr std::chrono::seconds kCleanUpTime{10};

/// One run of ExportDataset.
class Run {
 public:
  Run(ExportSource& source, const ExportRequest& request, BlobStore& blobs, const ExportOptions& options,
      const Progress& progress)
      : source_(source), blobs_(blobs), options_(options), progress_(progress) {
    manifest_.began_ms = WallClockMs();
    manifest_.token = options.token;
    manifest_.id = options.token.empty() ? backup::NewBackupId(manifest_.began_ms) : options.token;
    manifest_.data = fmt::format("{:08x}", std::random_device{}());
    manifest_.request = request;
    manifest_.form = FormOf(request.shape, request.options);
    manifest_.as_of_ms = source.as_of_ms();
    manifest_.snapshot = source.is_snapshot();
    manifest_.host = ProcessName();
    manifest_.version = KV_VERSION;
    manifest_.changes = options.changes;
    if (!options.changes.empty()) {
      manifest_.max_versions = options.max_versions;
      manifest_.ttl_ms = options.ttl_ms;
    }
    manifest_.columns = NewMaker()->columns();
  }

  absl::StatusOr<Manifest> Do() {
    const Lane::Common common{.blobs = blobs_,
                              .program = options_.program,
                              .id = manifest_.id,
                              .data = manifest_.data,
                              .schema = {manifest_.columns, Notes()},
                              .read = [this](uint64_t bytes) { return CountRead(bytes); }};
    for (size_t i = 0; i < std::max<size_t>(options_.lanes, 1); ++i) {
      lanes_.push_back(std::make_unique<Lane>(common, NewMaker(), i));
    }
    if (auto written = WriteAll(); !written.ok()) {
      CleanUp();
      return written;
    }
    const absl::Status put = PutManifest();
    if (put.ok()) return manifest_;
    // After any other error the manifest may be there, or may still land, so its files must stay. Where it
    // never lands, nobody reads them.
    if (!absl::IsAlreadyExists(put)) return put;
    auto there = ReadManifest(blobs_, manifest_.id);
    if (!there.ok()) return there;
    // The answer to an earlier attempt of this very put was lost on the way.
    if (there->data == manifest_.data) return there;
    // Another call with this token was faster.
    CleanUp();
    if (auto same = CheckSame(*there, manifest_.request); !same.ok()) return same;
    return there;
  }

 private:
  std::unique_ptr<RowMaker> NewMaker() const {
    const ExportRequest& request = manifest_.request;
    return request.since.empty() ? NewRowMaker(request.shape, request.options)
                                 : NewChangeRowMaker(request.shape, request.options);
  }

  /// Returns the notes that each file has about itself.
  std::vector<std::pair<std::string, std::string>> Notes() const {
    std::vector<std::pair<std::string, std::string>> notes = {
        {"kvstore.dataset", manifest_.request.dataset},
        {"kvstore.form", manifest_.form},
        {"kvstore.as_of_ms", std::to_string(manifest_.as_of_ms)},
        {"kvstore.export", manifest_.id}};
    if (!manifest_.request.since.empty()) notes.emplace_back("kvstore.since", manifest_.request.since);
    return notes;
  }

  /// Each lane takes the next part that nobody has taken, until there is none.
  absl::Status WriteAll() {
    auto status = backup::InParallel(lanes_.size(), lanes_.size(), [this](size_t i) {
      auto written = WriteParts(*lanes_[i]);
      if (!written.ok()) Fail(written);
      return written;
    });
    if (!status.ok()) return status;
    const bool is_empty =
        std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->files().empty(); });
    return is_empty ? lanes_.front()->PutEmpty() : absl::OkStatus();
  }

  absl::Status WriteParts(Lane& lane) {
    for (size_t part = next_part_++; part < source_.parts(); part = next_part_++) {
      auto scan = source_.Open(part);
      if (!scan.ok()) return scan.status();
      if (auto status = lane.Write(**scan); !status.ok()) return status;
    }
    return lane.Finish();
  }

  /// Has all lanes end with the first error.
  void Fail(const absl::Status& status) {
    const MutexLock lock(mutex_);
    if (failed_.ok()) failed_ = status;
  }

  absl::Status PutManifest() {
    for (const auto& lane : lanes_) {
      manifest_.files.insert(manifest_.files.end(), lane->files().begin(), lane->files().end());
    }
    Reached("export-manifest");
    manifest_.finished_ms = WallClockMs();
    return blobs_.Put(ManifestBlob(manifest_.id), EncodeManifest(manifest_), PutMode::kIfAbsent).status();
  }

  absl::Status CountRead(uint64_t bytes) {
    const MutexLock lock(mutex_);
    if (!failed_.ok()) return failed_;
    read_bytes_ += bytes;
    if (!progress_ || progress_(read_bytes_, std::max(read_bytes_, options_.total_bytes))) {
      return absl::OkStatus();
    }
    return absl::CancelledError("the export was stopped");
  }

  /// Removes the files that were put. Errors are ignored: no manifest names them.
  void CleanUp() {
    // The limits of the call that has failed are those of its threads, and may be over.
    std::thread([this] {
      const CallScope scope(kCleanUpTime);
      for (const auto& lane : lanes_) {
        for (const ExportedFile& file : lane->files()) {
          blobs_.Delete(fmt::format("{}/{}", manifest_.id, file.path)).IgnoreError();
        }
      }
    }).join();
  }

  ExportSource& source_;
  BlobStore& blobs_;
  const ExportOptions& options_;
  const Progress& progress_;
  Manifest manifest_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<size_t> next_part_{0};
  Mutex mutex_;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  uint64_t read_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// INVALID_ARGUMENT unless the table of changes that is asked for has the columns of the base's table.
absl::Status CheckFits(const Manifest& base, const ExportRequest& request) {
  const std::string_view form = FormOf(request.shape, request.options);
  if (base.form != form) {
    return absl::InvalidArgumentError(fmt::format(
        "since: the table of export '{}' is of the form '{}', and that of its changes would be '{}'; name an "
        "export of that form{}, or make a whole export",
        base.id, base.form, form, base.form == "wide" ? " (one without columns)" : ""));
  }
  if (base.request.options.columns != request.options.columns) {
    return absl::InvalidArgumentError(fmt::format(
        "since: export '{}' was made with other columns; use the same columns in the same order, or "
        "make a whole export",
        base.id));
  }
  if (base.request.options.text != request.options.text) {
    return absl::InvalidArgumentError(
        fmt::format("since: export '{}' was made {} the option text; make this one {} it, too, or make a "
                    "whole export",
                    base.id, base.request.options.text ? "with" : "without",
                    base.request.options.text ? "with" : "without"));
  }
  return absl::OkStatus();
}

/// FAILED_PRECONDITION if a setting of the dataset is not what it was at the time of its base. Cells appear
/// and disappear with such a change of settings, and no change is recorded for them.
template <typename T>
absl::Status CheckSetting(const Manifest& base, std::string_view name, const std::optional<T>& then, T now) {
  if (!then || *then == now) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "since: the dataset's {} was {} when export '{}' was made, and is {} now, which is not told "
      "as changes: make a whole export",
      name, *then, base.id, now));
}

}  // namespace

absl::Status CheckToken(const std::string& token) {
  if (auto status = CheckExportId(token); !status.ok()) {
    return absl::Status(status.code(), fmt::format("token: {}", std::string(status.message())));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Manifest>> FindExport(BlobStore& blobs, const std::string& token) {
  if (auto status = CheckToken(token); !status.ok()) return status;
  auto manifest = ReadManifest(blobs, token);
  if (absl::IsNotFound(manifest.status())) return std::nullopt;
  if (!manifest.ok()) return manifest.status();
  return *std::move(manifest);
}

absl::Status CheckSame(const Manifest& manifest, const ExportRequest& request) {
  if (manifest.request == request) return absl::OkStatus();
  return absl::AlreadyExistsError(fmt::format(
      "token: '{}' was used for an export of dataset '{}' with other options; use another token, or "
      "the same options",
      manifest.id, manifest.request.dataset));
}

absl::StatusOr<Manifest> FindBase(BlobStore& blobs, const ExportRequest& request, const DatasetSpec& spec) {
  const std::string& since = request.since;
  if (auto status = CheckExportId(since); !status.ok()) {
    return absl::Status(status.code(), fmt::format("since: {}", std::string(status.message())));
  }
  auto base = ReadManifest(blobs, since);
  if (absl::IsNotFound(base.status())) {
    return absl::NotFoundError(fmt::format("since: there is no export '{}' in {}", since, blobs.url()));
  }
  if (!base.ok()) return base;
  if (base->request.dataset != spec.name) {
    return absl::InvalidArgumentError(fmt::format("since: '{}' is an export of dataset '{}', not of '{}'",
                                                  since, base->request.dataset, spec.name));
  }
  if (base->changes.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("since: export '{}' has no token of changes, because it was made from a backup, or the "
                    "dataset kept no "
                    "changes then; make a whole export",
                    since));
  }
  if (auto fits = CheckFits(*base, request); !fits.ok()) return fits;
  if (auto same = CheckSetting(*base, "max_versions", base->max_versions, spec.max_versions); !same.ok()) {
    return same;
  }
  if (auto same = CheckSetting(*base, "ttl_ms", base->ttl_ms, spec.ttl_ms); !same.ok()) return same;
  return base;
}

absl::StatusOr<Manifest> ExportDataset(ExportSource& source, const ExportRequest& request, BlobStore& blobs,
                                       const ExportOptions& options, const Progress& progress) {
  if (!options.token.empty()) {
    if (auto status = CheckToken(options.token); !status.ok()) return status;
  }
  return Run(source, request, blobs, options, progress).Do();
}

}  // namespace kvstore::exports
