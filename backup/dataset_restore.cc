#include "backup/dataset_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "backup/fetched_object.h"
#include "backup/parallel.h"
#include "backup/progress_counter.h"
#include "backup/units_file.h"
#include "base/big_endian.h"
#include "base/fail_point.h"
#include "idgen/object_id.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {
namespace {

/// A dataset that is being created has no other worker.
constexpr uint64_t kEpoch = 1;
/// How many units are written together, and how many bytes of them.
constexpr size_t kTogether = 500;
constexpr size_t kTogetherBytes = size_t{4} << 20;

/// One run of RestoreUnits. RestoreFile is called by several threads at a time.
class UnitsRestore {
 public:
  UnitsRestore(const Manifest& manifest, BlobStore& blobs, MigrationEndpoint& endpoint,
               const DatasetSpec& spec, const Progress& progress)
      : manifest_(manifest),
        blobs_(blobs),
        endpoint_(endpoint),
        spec_(spec),
        progress_(progress, manifest.TotalBytes(), "the restore was stopped") {}

  absl::Status RestoreFile(const BackedUpFile& file) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto bytes = FetchObject(blobs_, file, kMaxUnitsFileBytes);
    if (!bytes.ok()) return bytes.status();
    auto status = ReadUnits(*bytes, [&](std::vector<Unit> units) { return Write(file, std::move(units)); });
    if (absl::IsDataLoss(status)) {
      return absl::DataLossError(fmt::format("{}: {}", file.blob, std::string(status.message())));
    }
    return status.ok() ? progress_.Add(file.size) : status;
  }

  absl::Status CheckCount() const {
    if (units_ == manifest_.dataset->units) return absl::OkStatus();
    return absl::DataLossError(fmt::format("the files have {} units, and there were {} when they were made",
                                           units_.load(), manifest_.dataset->units));
  }

 private:
  absl::Status Write(const BackedUpFile& file, std::vector<Unit> units) {
    Reached("restore-units");
    for (Unit& unit : units) {
      if (!IsUnitKey(spec_.shape, unit.key)) {
        return absl::DataLossError(
            fmt::format("{}: it has a unit that is none of {}", file.blob, Name(spec_.shape)));
      }
      if (spec_.shape == Shape::kObjects) SetType(unit);
    }
    units_ += units.size();
    std::span<const Unit> left(units);
    while (!left.empty()) {
      size_t count = 0;
      for (size_t bytes = 0; count < std::min(left.size(), kTogether) && bytes < kTogetherBytes; ++count) {
        for (const Cell& cell : left[count].cells) bytes += cell.value.size();
      }
      if (auto status = endpoint_.Replace(kEpoch, left.first(count), /*fresh=*/true); !status.ok())
        return status;
      left = left.subspan(count);
    }
    return absl::OkStatus();
  }

  /// Gives the ID of an object the type number of the new dataset.
  void SetType(Unit& unit) const {
    const auto id = ReadBigEndian<uint64_t>(unit.key);
    unit.key = ObjectUnitKey(ObjectId::ValueOf(ObjectId::ShardOf(id), spec_.type, id & ObjectId::kMaxLocal));
  }

  const Manifest& manifest_;
  BlobStore& blobs_;
  MigrationEndpoint& endpoint_;
  const DatasetSpec& spec_;
  ProgressCounter progress_;
  std::atomic<uint64_t> units_{0};
};

absl::Status Fill(const Manifest& manifest, BlobStore& blobs, MigrationEndpoint& endpoint,
                  const DatasetSpec& spec, const Progress& progress) {
  if (auto status = endpoint.TransitionTo(kEpoch, EndpointState::kImporting, /*capture=*/false); !status.ok())
    return status;
  UnitsRestore restore(manifest, blobs, endpoint, spec, progress);
  absl::Status restored = InParallel(manifest.files.size(), kFetched,
                                     [&](size_t i) { return restore.RestoreFile(manifest.files[i]); });
  if (!restored.ok()) return restored;
  if (auto status = restore.CheckCount(); !status.ok()) return status;
  const DatasetPart& dataset = *manifest.dataset;
  if (auto status = endpoint.RaiseTimestamp(kEpoch, dataset.timestamp); !status.ok()) return status;
  if (auto status = endpoint.RaiseLocalIds(kEpoch, dataset.next_local_ids); !status.ok()) return status;
  Reached("restore-serving");
  return endpoint.TransitionTo(kEpoch, EndpointState::kServing, /*capture=*/false);
}

}  // namespace

absl::Status RestoreUnits(const Manifest& manifest, BlobStore& blobs, MigrationEndpoint& endpoint,
                          const DatasetSpec& spec, const Progress& progress) {
  if (!manifest.dataset || manifest.dataset->spec.shape != spec.shape) {
    return absl::InvalidArgumentError(
        fmt::format("backup: {} is not one of a dataset of {}", manifest.id, Name(spec.shape)));
  }
  if (auto status = endpoint.RaiseEpoch(kEpoch); !status.ok()) return status;
  absl::Status filled = Fill(manifest, blobs, endpoint, spec, progress);
  if (!filled.ok()) endpoint.TransitionTo(kEpoch, EndpointState::kAbsent, /*capture=*/false).IgnoreError();
  return filled;
}

}  // namespace kvstore::backup
