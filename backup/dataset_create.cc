#include "backup/dataset_create.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backup/destination.h"
#include "backup/layout.h"
#include "backup/list.h"
#include "backup/object_sender.h"
#include "backup/pace.h"
#include "backup/parallel.h"
#include "backup/progress_counter.h"
#include "backup/units_file.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/hash.h"
#include "base/process.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {
namespace {

/// A file has at least so many bytes of units, and ends after the next unit that IsCut, or when it has
/// kMostFileBytes.
constexpr size_t kLeastFileBytes = size_t{4} << 20;
/// How many partitions are read at a time.
constexpr size_t kReaders = 4;

/// Whether a file may end after the unit: so for one of a thousand keys, and always for the same ones, so
/// that files begin and end where those of the last backup did.
bool IsCut(const Unit& unit) { return Fnv1a(unit.key) % 1000 == 0; }

uint64_t BytesOf(const Unit& unit) {
  uint64_t bytes = unit.key.size();
  for (const Cell& cell : unit.cells) bytes += cell.value.size();
  return bytes;
}

/// One run of CreateDatasetBackup. Its methods are called by several threads at a time.
class DatasetCreate {
 public:
  DatasetCreate(BlobStore& blobs, const Destination& destination, std::string id, uint64_t total_bytes,
                const Progress& progress, uint64_t bytes_per_s)
      : sender_(blobs, destination, std::move(id)),
        progress_(progress, total_bytes, "the backup was stopped"),
        pace_(bytes_per_s) {}

  /// Sends the units of a partition, the `number`th one, and returns their files in order.
  absl::StatusOr<std::vector<BackedUpFile>> Keep(UnitSnapshot& snapshot, const UnitRange& range,
                                                 uint64_t as_of, size_t number) {
    auto scan = snapshot.Scan(range, as_of);
    if (!scan.ok()) return scan.status();
    std::vector<BackedUpFile> files;
    UnitsWriter writer;
    const auto send = [&]() -> absl::Status {
      auto file = sender_.Keep(fmt::format("units/{:05}-{:05}", number, files.size()), writer.Take());
      if (!file.ok()) return file.status();
      files.push_back(*std::move(file));
      return absl::OkStatus();
    };
    for (;;) {
      if (auto status = CheckCall(); !status.ok()) return status;
      const auto page = (*scan)->Next();
      if (!page.ok()) return page.status();
      if (page->empty()) break;
      uint64_t bytes = 0;
      for (const Unit& unit : *page) {
        if (auto status = writer.Add(unit); !status.ok()) return status;
        bytes += BytesOf(unit);
        const bool ends =
            writer.bytes() >= kMostFileBytes || (writer.bytes() >= kLeastFileBytes && IsCut(unit));
        if (!ends) continue;
        if (auto status = send(); !status.ok()) return status;
      }
      units_ += page->size();
      if (auto status = pace_.Wait(bytes); !status.ok()) return status;
      if (auto status = progress_.Add(bytes); !status.ok()) return status;
    }
    if (writer.bytes() > 0) {
      if (auto status = send(); !status.ok()) return status;
    }
    return files;
  }

  uint64_t units() const { return units_; }
  const ObjectSender& sender() const { return sender_; }

 private:
  ObjectSender sender_;
  ProgressCounter progress_;
  Pace pace_;
  std::atomic<uint64_t> units_{0};
};

}  // namespace

absl::StatusOr<Manifest> CreateDatasetBackup(UnitReader& reader, const DatasetSpec& spec, BlobStore& blobs,
                                             uint64_t total_bytes, const Progress& progress,
                                             uint64_t bytes_per_s) {
  const uint64_t now = WallClockMs();
  Manifest manifest{.began_ms = now, .host = ProcessName(), .version = KV_VERSION, .engine = "units"};
  const auto began = std::chrono::steady_clock::now();
  const auto destination = Destination::LookAt(blobs, now);
  if (!destination.ok()) return destination.status();
  manifest.id = NewBackupId(now, destination->newest());
  Reached("backup-checkpoint");
  auto snapshot = reader.Snapshot(std::chrono::hours(kMaxCreateMs / kHourMs));
  if (!snapshot.ok()) return snapshot.status();
  DatasetPart dataset{
      .spec = spec, .as_of_ms = WallClockMs(), .units = 0, .timestamp = 0, .next_local_ids = {}};
  // After the snapshot: what it has was assigned before.
  const auto timestamp = reader.LastTimestamp();
  if (!timestamp.ok()) return timestamp.status();
  dataset.timestamp = *timestamp;
  auto next_local_ids = reader.NextLocalIds();
  if (!next_local_ids.ok()) return next_local_ids.status();
  dataset.next_local_ids = *std::move(next_local_ids);
  const auto ranges = (*snapshot)->Partitions(kReaders);
  if (!ranges.ok()) return ranges.status();
  std::vector<std::vector<BackedUpFile>> files(ranges->size());
  DatasetCreate create(blobs, *destination, manifest.id, total_bytes, progress, bytes_per_s);
  const absl::Status kept = InParallel(files.size(), kReaders, [&](size_t i) {
    auto of_range = create.Keep(**snapshot, (*ranges)[i], dataset.as_of_ms, i);
    if (!of_range.ok()) return of_range.status();
    files[i] = *std::move(of_range);
    return absl::OkStatus();
  });
  if (!kept.ok()) return kept;
  for (auto& of_range : files) {
    std::move(of_range.begin(), of_range.end(), std::back_inserter(manifest.files));
  }
  dataset.units = create.units();
  manifest.dataset = std::move(dataset);
  manifest.sent_objects = create.sender().sent_objects();
  manifest.sent_bytes = create.sender().sent_bytes();
  if (auto status = PutManifest(blobs, manifest, began); !status.ok()) return status;
  return manifest;
}

}  // namespace kvstore::backup
