#include "cli/shared_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "catalog/catalog_json.h"
#include "catalog/shared_nodes.h"
#include "catalog/zookeeper_nodes.h"
#include "coordination/zookeeper.h"

namespace kvstore::cli {
namespace {

/// How often a checkpoint is made again because datasets came and went meanwhile.
constexpr int kMaxAttempts = 10;

/// The files that say what the data of a backend is, by their paths in a store's folder.
using StoreFiles = std::map<std::string, std::string>;

StoreFiles FilesOf(const SharedNodes& nodes, const std::string& backend) {
  StoreFiles files;
  std::vector<CatalogEntry> entries;
  std::vector<std::string> unreadable;
  for (CatalogEntry& entry : ActiveEntries(nodes, &unreadable)) {
    if (entry.spec.backend != backend) continue;
    const auto record = nodes.find("migrations/" + entry.spec.name);
    // A record is empty when its migration has ended.
    if (record != nodes.end() && !record->second.empty()) {
      files["migrations/" + entry.spec.name + ".json"] = record->second;
    }
    entries.push_back(std::move(entry));
  }
  for (const std::string& entry : unreadable) {
    spdlog::warn(
        "the catalog of the backup lacks a dataset whose entry cannot be read, if it is one of this store; "
        "its data, "
        "and the entry as it is, are in the backup then: {}",
        entry);
  }
  files["catalog.json"] = EncodeCatalog(entries);
  return files;
}

/// Makes checkpoints of one store.
class SharedCheckpointMaker {
 public:
  SharedCheckpointMaker(Backend& engine, std::string backend, Coordination coordination)
      : engine_(engine),
        backend_(std::move(backend)),
        root_(std::move(coordination.root)),
        zookeeper_(std::move(coordination.zookeeper), nullptr) {}

  absl::StatusOr<std::unique_ptr<Checkpoint>> Make() {
    auto before = ReadSharedNodes(zookeeper_, root_);
    if (!before.ok()) return before.status();
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      auto checkpoint = engine_.MakeCheckpoint();
      if (!checkpoint.ok()) return checkpoint;
      auto after = ReadSharedNodes(zookeeper_, root_);
      if (!after.ok()) return after.status();
      const StoreFiles files = FilesOf(*after, backend_);
      if (files != FilesOf(*before, backend_)) {
        // The catalog may name a dataset that the checkpoint lacks.
        before = std::move(after);
        continue;
      }
      for (const auto& [path, text] : files) {
        if (auto status = (*checkpoint)->Add(path, text); !status.ok()) return status;
      }
      if (auto status = (*checkpoint)->Add(kSharedNodesFile, EncodeSharedNodes(*after)); !status.ok()) {
        return status;
      }
      return checkpoint;
    }
    return absl::UnavailableError(
        fmt::format("datasets were created, altered or dropped during each of {} attempts to make a "
                    "checkpoint; try again when the catalog is quiet",
                    kMaxAttempts));
  }

 private:
  Backend& engine_;
  const std::string backend_;
  const std::string root_;
  ZooKeeper zookeeper_;
};

class LogOfShared : public WriteLog {
 public:
  LogOfShared(std::unique_ptr<WriteLog> log, std::string backend, Coordination coordination)
      : log_(std::move(log)),
        backend_(std::move(backend)),
        reader_(std::move(coordination.zookeeper), std::move(coordination.root)) {}

  uint64_t Last() const override { return log_->Last(); }
  absl::StatusOr<std::vector<LoggedWrite>> Read(uint64_t after, size_t max_bytes) override {
    return log_->Read(after, max_bytes);
  }
  absl::StatusOr<LogSchema> Schema() override {
    auto schema = log_->Schema();
    if (!schema.ok()) return schema;
    const MutexLock lock(mutex_);
    const auto text = reader_.Text();
    const auto nodes = text.ok() ? DecodeSharedNodes(*text) : text.status();
    if (nodes.ok()) files_ = FilesOf(*nodes, backend_);
    if (!files_) return nodes.status();
    schema->files.insert(files_->begin(), files_->end());
    return schema;
  }

 private:
  const std::unique_ptr<WriteLog> log_;
  const std::string backend_;
  Mutex mutex_;
  SharedNodesReader reader_ ABSL_GUARDED_BY(mutex_);
  std::optional<StoreFiles> files_ ABSL_GUARDED_BY(mutex_);  // as they were read last
};

}  // namespace

backup::CheckpointMaker SharedCheckpoints(Backend& engine, std::string backend, Coordination coordination) {
  return [maker = std::make_shared<SharedCheckpointMaker>(engine, std::move(backend),
                                                          std::move(coordination))] { return maker->Make(); };
}

std::unique_ptr<WriteLog> SharedLog(std::unique_ptr<WriteLog> log, std::string backend,
                                    Coordination coordination) {
  return std::make_unique<LogOfShared>(std::move(log), std::move(backend), std::move(coordination));
}

}  // namespace kvstore::cli
