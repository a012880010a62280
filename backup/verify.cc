#include "backup/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/parallel.h"
#include "backup/progress_counter.h"
#include "base/mutex.h"
#include "catalog/catalog_json.h"
#include "catalog/shared_nodes.h"

namespace kvstore::backup {
namespace {

/// One run of VerifyBackup.
class Verification {
 public:
  Verification(const Manifest& manifest, BlobStore& blobs, const Progress& progress)
      : manifest_(manifest), blobs_(blobs), progress_(progress) {}

  /// Compares the sizes of all objects with those that the destination lists.
  absl::Status CheckObjects() {
    const auto objects = ListAll(blobs_, kObjectPrefix);
    if (!objects.ok()) return objects.status();
    std::map<std::string_view, uint64_t> sizes;
    for (const BlobEntry& object : *objects) sizes.emplace(object.name, object.size);
    for (const BackedUpFile& file : manifest_.files) {
      ++found_.objects;
      const auto size = sizes.find(file.blob);
      if (size == sizes.end()) {
        AddProblem(file, "is missing");
      } else if (size->second != file.size) {
        AddProblem(file, fmt::format("has {} bytes, not {}", size->second, file.size));
      }
    }
    return absl::OkStatus();
  }

  /// Reads the catalog, and the file that names the engine's own list of files. For a dataset, the manifest
  /// says it all.
  absl::Status CheckSchema() {
    if (manifest_.dataset) {
      found_.datasets.push_back(manifest_.dataset->spec.name);
      return absl::OkStatus();
    }
    if (manifest_.server) return CheckSharedNodes();
    // A store that has never had a dataset has no catalog.
    if (const BackedUpFile* catalog = manifest_.Find("catalog.json"); catalog != nullptr) {
      if (auto status = CheckCatalog(*catalog); !status.ok()) return status;
    }
    // The catalog lacks the datasets whose entries in ZooKeeper could not be read.
    if (const BackedUpFile* nodes = manifest_.Find(kSharedNodesFile); nodes != nullptr) {
      if (auto entries = ReadEntries(*nodes); !entries.ok()) return entries.status();
    }
    const BackedUpFile& file = *manifest_.Find("rocksdb/CURRENT");
    auto current = ReadSmall(file);
    if (!current.ok()) return current.status();
    if (!*current) return absl::OkStatus();
    if ((*current)->ends_with('\n')) (*current)->pop_back();
    if (manifest_.Find("rocksdb/" + **current) == nullptr) {
      AddProblem(file, "names a file that the backup does not have");
    }
    return absl::OkStatus();
  }

  /// Reads every object once, however many files have its bytes.
  absl::Status CheckBytes() {
    // A manifest that contradicts itself is not whole, so what two files say of one object is compared twice.
    using Object = std::tuple<std::string_view, uint64_t, std::string_view>;
    std::map<Object, const BackedUpFile*> by_object;
    for (const BackedUpFile& file : manifest_.files) {
      by_object.emplace(Object(file.blob, file.size, file.checksum), &file);
    }
    std::vector<const BackedUpFile*> files;
    uint64_t total = 0;
    for (const auto& [object, file] : by_object) {
      files.push_back(file);
      total += file->size;
    }
    ProgressCounter read(progress_, total, "the verification was stopped");
    absl::Status checked = InParallel(files.size(), kFetched, [&](size_t i) {
      const BackedUpFile& file = *files[i];
      return CheckFile(file,
                       blobs_.Read(file.blob, {.size = file.size, .checksum = file.checksum},
                                   [&](uint64_t, std::string_view bytes) { return read.Add(bytes.size()); }));
    });
    found_.read_bytes = read.done();
    return checked;
  }

  Verified Take() {
    std::sort(found_.problems.begin(), found_.problems.end());
    found_.problems.erase(std::unique(found_.problems.begin(), found_.problems.end()), found_.problems.end());
    return std::move(found_);
  }

 private:
  /// Checks that the backup of a fleet's server has the shared ZooKeeper nodes, and lists their datasets.
  absl::Status CheckSharedNodes() {
    const BackedUpFile* const file = manifest_.Find(kSharedNodesFile);
    if (file == nullptr) {
      found_.problems.push_back(fmt::format("{} is not among its files", kSharedNodesFile));
      return absl::OkStatus();
    }
    const auto entries = ReadEntries(*file);
    if (!entries.ok()) return entries.status();
    for (const CatalogEntry& entry : *entries) found_.datasets.push_back(entry.spec.name);
    return absl::OkStatus();
  }

  /// Reads the entries of a catalog in ZooKeeper.
  absl::StatusOr<std::vector<CatalogEntry>> ReadEntries(const BackedUpFile& file) {
    const auto text = ReadSmall(file);
    if (!text.ok()) return text.status();
    if (!*text) return std::vector<CatalogEntry>();
    const auto nodes = DecodeSharedNodes(**text);
    if (!nodes.ok()) {
      AddProblem(file, fmt::format("does not decode: {}", std::string(nodes.status().message())));
      return std::vector<CatalogEntry>();
    }
    std::vector<std::string> unreadable;
    std::vector<CatalogEntry> entries = ActiveEntries(*nodes, &unreadable);
    for (const std::string& entry : unreadable) AddProblem(file, entry);
    return entries;
  }

  absl::Status CheckCatalog(const BackedUpFile& file) {
    const auto text = ReadSmall(file);
    if (!text.ok() || !*text) return text.status();
    const auto entries = DecodeCatalog(**text);
    if (!entries.ok()) {
      AddProblem(file, fmt::format("does not decode: {}", std::string(entries.status().message())));
      return absl::OkStatus();
    }
    for (const CatalogEntry& entry : *entries) found_.datasets.push_back(entry.spec.name);
    return absl::OkStatus();
  }

  /// Reads a file of the backup; nullopt if that is a problem of the backup, which is recorded.
  absl::StatusOr<std::optional<std::string>> ReadSmall(const BackedUpFile& file) {
    if (file.size > kBlobPieceBytes) {
      AddProblem(file, fmt::format("has {} bytes, which is more than such a file can have", file.size));
      return std::nullopt;
    }
    std::string text;
    const auto append = [&text](uint64_t, std::string_view bytes) {
      text += bytes;
      return absl::OkStatus();
    };
    const absl::Status read = blobs_.Read(file.blob, {.size = file.size, .checksum = file.checksum}, append);
    if (read.ok()) return text;
    if (auto status = CheckFile(file, read); !status.ok()) return status;
    return std::nullopt;
  }

  /// Records a problem if what was read is not what was backed up, and returns other errors.
  absl::Status CheckFile(const BackedUpFile& file, const absl::Status& read) {
    if (absl::IsNotFound(read)) {
      AddProblem(file, "is missing");
    } else if (absl::IsDataLoss(read)) {
      AddProblem(file, fmt::format("is damaged: {}", std::string(read.message())));
    } else {
      return read;
    }
    return absl::OkStatus();
  }

  void AddProblem(const BackedUpFile& file, std::string_view problem) {
    const MutexLock lock(mutex_);
    found_.problems.push_back(fmt::format("{}, which restores to {}, {}", file.blob, file.path, problem));
  }

  const Manifest& manifest_;
  BlobStore& blobs_;
  const Progress& progress_;
  Mutex mutex_;  // guards found_ while several threads read
  Verified found_;
};

}  // namespace

absl::StatusOr<Verified> VerifyBackup(const Manifest& manifest, BlobStore& blobs, VerifyDepth depth,
                                      const Progress& progress) {
  Verification verification(manifest, blobs, progress);
  absl::Status status = verification.CheckObjects();
  if (status.ok() && depth >= VerifyDepth::kSchema) status = verification.CheckSchema();
  if (status.ok() && depth >= VerifyDepth::kBytes) status = verification.CheckBytes();
  if (!status.ok()) return status;
  return verification.Take();
}

}  // namespace kvstore::backup
