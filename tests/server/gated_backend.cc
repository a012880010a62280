#include "tests/server/gated_backend.h"

#include <optional>
#include <set>

#include "backend_api/outcome.h"
#include "idgen/object_id.h"
#include "tests/support/no_store.h"

namespace kvstore::testing {
namespace {

class GatedRows : public RowStore {
 public:
  GatedRows(std::shared_ptr<Gate> gate, std::string dataset)
      : gate_(std::move(gate)), dataset_(std::move(dataset)) {}

  absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions&,
                              const std::optional<RowPosition>&) override {
    if (auto status = gate_->Ask(dataset_, row); !status.ok()) return status;
    const auto done = gate_->Done(dataset_, std::string(row));
    if (done.empty()) return RowPage{};
    return RowPage{.items = {{"c", {{done.size(), done.back()}}}}, .next = std::nullopt};
  }
  absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions&) override {
    if (auto status = gate_->Ask(dataset_, row); !status.ok()) return status;
    gate_->Note(dataset_, row, cells[0].value);
    return PutResult{};
  }
  absl::Status Delete(std::string_view row, const DeleteOptions&) override {
    if (auto status = gate_->Ask(dataset_, row); !status.ok()) return status;
    gate_->Note(dataset_, row, "(deleted)");
    return absl::OkStatus();
  }
  std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads) override {
    std::vector<absl::StatusOr<RowPage>> pages;
    for (const RowRead& read : reads) pages.push_back(Get(read.row, read.options, std::nullopt));
    return pages;
  }
  std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes) override {
    std::vector<absl::StatusOr<PutResult>> results;
    std::set<std::string_view> refused;
    for (const RowWrite& write : writes) {
      if (refused.contains(write.row)) {
        results.emplace_back(WritesHeldError("behind another write of the row"));
        continue;
      }
      results.push_back(Put(write.row, write.cells, write.options));
      if (IsMigrating(results.back().status())) refused.insert(write.row);
    }
    return results;
  }
  std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes) override {
    std::vector<absl::Status> results;
    for (const RowDelete& one : deletes) results.push_back(Delete(one.row, one.options));
    return results;
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return std::vector<Partition>{{.name = "all", .range = {}}};
  }
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange&, const ScanOptions&,
                                                const std::optional<ScanPosition>&) override {
    struct Nothing : RowScan {
      absl::StatusOr<bool> Next(ScannedRow&) override { return false; }
      std::optional<ScanPosition> position() const override { return std::nullopt; }
    };
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return std::make_unique<Nothing>();
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const std::string dataset_;
};

class GatedObjects : public ObjectStore {
 public:
  GatedObjects(std::shared_ptr<Gate> gate, const DatasetSpec& spec)
      : gate_(std::move(gate)), dataset_(spec.name), type_(spec.type) {}

  absl::StatusOr<uint64_t> Create(std::string_view data, const CreateOptions&) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    gate_->Note(dataset_, "", data);
    return ObjectId::Make(1, type_, 1)->value();
  }
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions&) override {
    if (auto status = gate_->Ask(dataset_, std::to_string(id)); !status.ok()) return status;
    return Object{id, "{}", 1};
  }
  std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                              const ObjectReadOptions& options) override {
    std::vector<absl::StatusOr<Object>> objects;
    for (const uint64_t id : ids) objects.push_back(Get(id, options));
    return objects;
  }
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions&) override {
    if (auto status = gate_->Ask(dataset_, std::to_string(id)); !status.ok()) return status;
    const auto data = transform("{}");
    if (!data.ok()) return data.status();
    gate_->Note(dataset_, std::to_string(id), *data);
    return Object{id, *data, 1};
  }
  absl::Status Erase(uint64_t id) override { return gate_->Ask(dataset_, std::to_string(id)); }
  absl::StatusOr<ObjectScanPage> Scan(const IdRange&, const ObjectScanOptions&) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return ObjectScanPage{};
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return std::vector<Partition>{{.name = "all", .range = {}}};
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const std::string dataset_;
  const uint32_t type_;
};

class GatedMappings : public NoMappings {
 public:
  GatedMappings(std::shared_ptr<Gate> gate, std::string dataset)
      : gate_(std::move(gate)), dataset_(std::move(dataset)) {}

  absl::Status Add(uint64_t, uint64_t, std::optional<uint64_t>) override { return gate_->Ask(dataset_, ""); }
  absl::StatusOr<bool> Remove(uint64_t, uint64_t) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return true;
  }
  absl::StatusOr<MappingList> List(uint64_t, const MappingQuery&) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return MappingList{.entries = {{ObjectId::Make(1, 1, 1)->value(), 1}}, .more = false};
  }
  absl::StatusOr<uint64_t> Count(uint64_t) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return 1;
  }
  absl::StatusOr<MappingScanPage> Scan(const MappingPosition&, uint64_t, uint32_t) override {
    if (auto status = gate_->Ask(dataset_, ""); !status.ok()) return status;
    return MappingScanPage{};
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const std::string dataset_;
};

class GatedBackend : public Backend {
 public:
  GatedBackend(std::shared_ptr<Gate> gate, bool waits) : gate_(std::move(gate)), waits_(waits) {}
  Capabilities capabilities() const override {
    return {.rows = true, .objects = true, .mappings = true, .waits = waits_, .changes = true};
  }
  absl::Status CreateDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status AlterDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status DropDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    return std::make_shared<GatedRows>(gate_, spec.name);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    return std::make_shared<GatedObjects>(gate_, spec);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return std::make_shared<GatedMappings>(gate_, spec.name);
  }
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress&) override {
    if (auto status = gate_->Ask(spec.name, ""); !status.ok()) return status;
    return ReclaimResult{};
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec&) override { return DatasetStats{}; }
  absl::StatusOr<std::string> StartChanges(const DatasetSpec& spec, ChangesFrom) override {
    return PositionOf(spec);
  }
  absl::StatusOr<UnitChanges> ReadChanges(const DatasetSpec& spec, std::string_view,
                                          const ChangeLimits&) override {
    if (auto status = gate_->Ask(spec.name, kChangesKey); !status.ok()) return status;
    return UnitChanges{.changes = {}, .position = PositionOf(spec), .complete_until_ms = 1};
  }
  void Describe(MetricsSink&) const override {}

 private:
  /// How often the row "r" was put.
  std::string PositionOf(const DatasetSpec& spec) const {
    return std::to_string(gate_->Done(spec.name, "r").size());
  }

  const std::shared_ptr<Gate> gate_;
  const bool waits_;
};

}  // namespace

void Gate::Set(Answer answer) {
  const MutexLock lock(mutex_);
  answer_ = std::move(answer);
}

absl::Status Gate::Ask(std::string_view dataset, std::string_view key) {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    answer = answer_;
  }
  // Without the lock, because an answer may take its time.
  const absl::Status status = answer ? answer(dataset, key) : absl::OkStatus();
  const MutexLock lock(mutex_);
  if (!status.ok()) ++refusals_;
  return status;
}

int Gate::refusals() const {
  const MutexLock lock(mutex_);
  return refusals_;
}

void Gate::Note(std::string_view dataset, std::string_view row, std::string_view value) {
  const MutexLock lock(mutex_);
  done_[{std::string(dataset), std::string(row)}].emplace_back(value);
}

std::vector<std::string> Gate::Done(const std::string& dataset, const std::string& row) const {
  const MutexLock lock(mutex_);
  const auto found = done_.find({dataset, row});
  return found == done_.end() ? std::vector<std::string>() : found->second;
}

Gate::Answer Migrates(std::string dataset) {
  return [migrating = std::move(dataset)](std::string_view asked, std::string_view) {
    return asked == migrating ? WritesHeldError("it migrates") : absl::OkStatus();
  };
}

std::unique_ptr<Backend> MakeGatedBackend(std::shared_ptr<Gate> gate, bool waits) {
  return std::make_unique<GatedBackend>(std::move(gate), waits);
}

}  // namespace kvstore::testing
