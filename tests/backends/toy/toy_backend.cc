#include "tests/backends/toy/toy_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/row_rules.h"
#include "backend_api/scan_budget.h"
#include "base/clock.h"
#include "idgen/object_id.h"
#include "json/json.h"
#include "kvstore_api/limits.h"
#include "tests/backend_suite/row_model.h"

namespace kvstore::testing {

/// What is stored of one dataset. What belongs to the other shapes stays empty.
struct ToyDataset {
  explicit ToyDataset(const DatasetSpec& spec) : rows(spec) {}

  Mutex mutex;
  bool dropped ABSL_GUARDED_BY(mutex) = false;
  uint64_t clock ABSL_GUARDED_BY(mutex) = 0;  // the last timestamp that was assigned
  RowModel rows ABSL_GUARDED_BY(mutex);       // and the settings
  std::map<uint64_t, Object> objects ABSL_GUARDED_BY(mutex);
  std::map<uint32_t, uint64_t> locals ABSL_GUARDED_BY(mutex);       // shard -> last local ID
  std::map<std::string, uint64_t> requests ABSL_GUARDED_BY(mutex);  // request ID -> object ID
  std::map<uint64_t, std::map<uint64_t, uint64_t>> mappings ABSL_GUARDED_BY(mutex);  // from -> to -> sequence

  uint64_t NextTimestamp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return clock = std::max(clock + 1, WallClockMs());
  }
};

namespace {

constexpr uint32_t kAllVersions = std::numeric_limits<uint32_t>::max();

/// What the stores of all shapes have in common.
template <typename Interface>
class ToyStore : public Interface {
 public:
  explicit ToyStore(std::shared_ptr<ToyDataset> dataset) : data_(std::move(dataset)) {}

 protected:
  absl::Status Check() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_->mutex) {
    return data_->dropped ? absl::NotFoundError("dataset: it was dropped") : absl::OkStatus();
  }
  const std::shared_ptr<ToyDataset> data_;
};

// ---- rows ----

struct PageLimits {
  uint32_t versions = 1;
  size_t columns = kMaxPageCells;
  size_t bytes = kDefaultScanBytes;
};

/// Cuts a page out of a whole row with all its visible cells, from behind `after` on.
RowPage Cut(const std::vector<Item>& row, const std::optional<RowPosition>& after, const PageLimits& limits) {
  RowPage page;
  size_t bytes = 0;
  size_t cells = 0;
  for (const Item& item : row) {
    const bool resumed = after && after->cells > 0 && item.column == after->column;
    if (after && item.column <= after->column && !resumed) continue;
    uint32_t returned = resumed ? after->cells : 0;  // of the column, on this page and those before
    bool begins = true;
    for (const Cell& cell : item.cells) {
      if (resumed && cell.timestamp >= after->timestamp) continue;
      if (returned == limits.versions) break;
      bytes += cell.value.size() + (begins ? item.column.size() : 0);
      const bool full = bytes > limits.bytes || (begins && page.items.size() == limits.columns);
      if (++cells > kMaxPageCells || (full && !page.items.empty())) {
        const Item& last = page.items.back();
        page.next = RowPosition{.column = last.column};
        if (!begins) *page.next = {last.column, returned, last.cells.back().timestamp};
        return page;
      }
      if (begins) page.items.push_back({item.column, {}});
      begins = false;
      ++returned;
      page.items.back().cells.push_back(cell);
    }
  }
  return page;
}

/// A scan of the rows as they were when it began.
class ToyScan : public RowScan {
 public:
  ToyScan(std::vector<ScannedRow> rows, const PageLimits& limits, std::optional<ScanPosition> after)
      : rows_(std::move(rows)), limits_(limits), position_(std::move(after)) {}

  absl::StatusOr<bool> Next(ScannedRow& row) override {
    for (; at_ < rows_.size(); ++at_) {
      const ScannedRow& whole = rows_[at_];
      const bool begun = position_ && position_->row == whole.key;
      if (begun && !position_->inside) continue;
      RowPage page = Cut(whole.items, begun ? position_->inside : std::nullopt, limits_);
      if (page.items.empty()) continue;
      row = {whole.key, std::move(page.items), page.next.has_value()};
      position_ = ScanPosition{.row = whole.key, .inside = std::move(page.next)};
      return true;
    }
    return false;
  }
  std::optional<ScanPosition> position() const override { return position_; }

 private:
  const std::vector<ScannedRow> rows_;
  const PageLimits limits_;
  size_t at_ = 0;
  std::optional<ScanPosition> position_;
};

class ToyRows : public ToyStore<RowStore> {
 public:
  using ToyStore::ToyStore;

  absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                              const std::optional<RowPosition>& after) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    const auto items = data_->rows.Get(row, options.columns, kAllVersions, options.time_range, WallClockMs());
    return Cut(items, after, {options.versions, options.limit, options.max_bytes});
  }
  absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    if (options.condition) {
      const std::vector<std::string> column = {std::string(options.condition->column)};
      const auto items = data_->rows.Get(row, column, 1, {}, WallClockMs());
      std::optional<std::string_view> newest;
      if (!items.empty()) newest = items[0].cells[0].value;
      if (auto status = CheckCondition(*options.condition, newest); !status.ok()) return status;
    }
    PutResult result;
    if (std::ranges::any_of(cells, [](const CellWrite& cell) { return !cell.timestamp; })) {
      result.timestamp = data_->NextTimestamp();
      while (Collides(cells, *result.timestamp)) result.timestamp = data_->NextTimestamp();
    }
    data_->rows.Put(row, cells, result.timestamp.value_or(0));
    return result;
  }
  absl::Status Delete(std::string_view row, const DeleteOptions& options) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    if (options.cells && data_->rows.spec.max_versions != 0)
      return absl::FailedPreconditionError("cells: max_versions must be 0 to delete single cells");
    data_->rows.Delete(row, options);
    return absl::OkStatus();
  }
  std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads) override {
    std::vector<absl::StatusOr<RowPage>> pages;
    BatchBytes bytes;
    for (const RowRead& read : reads) {
      pages.push_back(bytes.full() ? BatchFullError() : Get(read.row, read.options, std::nullopt));
      if (pages.back().ok()) bytes.Add(pages.back()->items);
    }
    return pages;
  }
  std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes) override {
    std::vector<absl::StatusOr<PutResult>> results;
    for (const RowWrite& write : writes) results.push_back(Put(write.row, write.cells, write.options));
    return results;
  }
  std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes) override {
    std::vector<absl::Status> results;
    for (const RowDelete& one : deletes) results.push_back(Delete(one.row, one.options));
    return results;
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t /*wanted*/) override {
    return std::vector<Partition>{{.name = "all", .range = {}}};
  }
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange& range, const ScanOptions& options,
                                                const std::optional<ScanPosition>& after) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    if (!range.shard.empty()) return absl::InvalidArgumentError("partition: this store has no shards");
    const RowRange left{.start = after ? after->row : range.start, .end = range.end};
    ScanOptions whole = options;
    whole.versions = kAllVersions;
    const PageLimits limits{.versions = options.versions, .bytes = options.max_bytes};
    return std::make_unique<ToyScan>(data_->rows.Scan(left, whole, WallClockMs()), limits, after);
  }
};

// ---- objects ----

class ToyObjects : public ToyStore<ObjectStore> {
 public:
  using ToyStore::ToyStore;

  absl::StatusOr<uint64_t> Create(std::string_view data, const CreateOptions& options) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    const uint32_t shard = options.near ? ObjectId::ShardOf(*options.near) : options.shard.value_or(0);
    const std::string request = fmt::format("{}/{}", shard, options.request_id);
    if (const auto made = data_->requests.find(request); made != data_->requests.end()) return made->second;
    const auto id = ObjectId::Make(shard, data_->rows.spec.type, data_->locals[shard] + 1);
    if (!id.ok()) return absl::ResourceExhaustedError(fmt::format("shard {}: all local IDs are used", shard));
    ++data_->locals[shard];
    data_->objects[id->value()] = {id->value(), std::string(data), data_->NextTimestamp()};
    if (!options.request_id.empty()) data_->requests[request] = id->value();
    return id->value();
  }
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) override {
    const MutexLock lock(data_->mutex);
    return Find(id, options.include_inactive);
  }
  std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                              const ObjectReadOptions& options) override {
    std::vector<absl::StatusOr<Object>> objects;
    for (const uint64_t id : ids) objects.push_back(Get(id, options));
    return objects;
  }
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions& options) override {
    const MutexLock lock(data_->mutex);
    const auto object = Find(id, options.include_inactive);
    if (!object.ok()) return object;
    if (options.expected_timestamp.value_or(object->timestamp) != object->timestamp)
      return absl::FailedPreconditionError(fmt::format("expected_timestamp: object {} was changed", id));
    auto text = transform(object->data);
    if (!text.ok()) return text.status();
    return data_->objects[id] = {id, *std::move(text), data_->NextTimestamp()};
  }
  absl::Status Erase(uint64_t id) override {
    const MutexLock lock(data_->mutex);
    const auto object = Find(id, /*include_inactive=*/true);
    if (object.ok()) data_->objects.erase(id);
    return object.status();
  }
  absl::StatusOr<ObjectScanPage> Scan(const IdRange& range, const ObjectScanOptions& options) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    ObjectScanPage page;
    size_t bytes = 0;
    for (auto at = data_->objects.lower_bound(range.start); at != data_->objects.end(); ++at) {
      const auto& [id, object] = *at;
      if (id >= range.end) break;
      const bool too_large = !page.objects.empty() && bytes + object.data.size() > options.max_bytes;
      if (id > range.start && (page.objects.size() == options.limit || too_large || IsScanBudgetSpent())) {
        page.next = id;
        break;
      }
      SpendScanBudget(1);
      if (!options.include_inactive && IsInactive(object.data)) continue;
      bytes += object.data.size();
      page.objects.push_back(object);
    }
    return page;
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t /*wanted*/) override {
    return std::vector<Partition>{{.name = "all", .range = {}}};
  }

 private:
  absl::StatusOr<Object> Find(uint64_t id, bool include_inactive) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_->mutex) {
    if (auto status = Check(); !status.ok()) return status;
    const auto found = data_->objects.find(id);
    if (found == data_->objects.end() || (!include_inactive && IsInactive(found->second.data)))
      return absl::NotFoundError(fmt::format("object_id: there is no object {}", id));
    return found->second;
  }
};

// ---- mappings ----

class ToyMappings : public ToyStore<MappingStore> {
 public:
  using ToyStore::ToyStore;

  absl::Status Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    data_->mappings[from][to] = sequence.value_or(WallClockMs());
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Remove(uint64_t from, uint64_t to) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    return data_->mappings[from].erase(to) == 1;
  }
  absl::StatusOr<MappingList> List(uint64_t from, const MappingQuery& query) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    const auto before = [&](const MappingEntry& a, const MappingEntry& b) {
      const auto& [first, second] = query.descending ? std::tie(b, a) : std::tie(a, b);
      return std::tie(first.sequence, first.to) < std::tie(second.sequence, second.to);
    };
    MappingList list;
    for (const auto& [to, sequence] : data_->mappings[from]) {
      if (const MappingEntry entry{to, sequence}; !query.after || before(*query.after, entry))
        list.entries.push_back(entry);
    }
    std::ranges::sort(list.entries, before);
    const size_t skipped = std::min<size_t>(query.offset, list.entries.size());
    list.entries.erase(list.entries.begin(), list.entries.begin() + static_cast<ptrdiff_t>(skipped));
    list.more = list.entries.size() > query.limit;
    if (list.more) list.entries.resize(query.limit);
    return list;
  }
  absl::StatusOr<uint64_t> Count(uint64_t from) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    return data_->mappings[from].size();
  }
  absl::StatusOr<MappingScanPage> Scan(const MappingPosition& start, uint64_t end, uint32_t limit) override {
    const MutexLock lock(data_->mutex);
    if (auto status = Check(); !status.ok()) return status;
    MappingScanPage page;
    for (auto at = data_->mappings.lower_bound(start.from); at != data_->mappings.end(); ++at) {
      const auto& [from, entries] = *at;
      if (from >= end) break;
      for (const auto& [to, sequence] : entries) {
        const MappingPosition place{from, to};
        if (place < start) continue;
        if (place > start && (page.entries.size() == limit || IsScanBudgetSpent())) {
          page.next = place;
          return page;
        }
        SpendScanBudget(1);
        page.entries.push_back({from, to, sequence});
      }
    }
    return page;
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t /*wanted*/) override {
    return std::vector<Partition>{{.name = "all", .range = {}}};
  }
};

// ---- the backend ----

/// Counts the cells that clients see under these settings.
uint64_t CountCells(RowModel rows, uint32_t max_versions, uint64_t ttl_ms) {
  rows.spec.max_versions = max_versions;
  rows.spec.ttl_ms = ttl_ms;
  uint64_t cells = 0;
  for (const ScannedRow& row : rows.Scan({}, {.versions = kAllVersions}, WallClockMs())) {
    for (const Item& item : row.items) cells += item.cells.size();
  }
  return cells;
}

class ToyBackend : public Backend {
 public:
  explicit ToyBackend(std::shared_ptr<ToyDisk> disk) : disk_(std::move(disk)) {}

  Capabilities capabilities() const override { return {.rows = true, .objects = true, .mappings = true}; }

  absl::Status CreateDataset(const DatasetSpec& spec) override {
    const MutexLock lock(disk_->mutex);
    auto& dataset = disk_->datasets[spec.incarnation];
    if (dataset == nullptr) dataset = std::make_shared<ToyDataset>(spec);
    return absl::OkStatus();
  }
  absl::Status AlterDataset(const DatasetSpec& spec) override { return Find(spec).status(); }
  absl::Status DropDataset(const DatasetSpec& spec) override {
    const auto dataset = Find(spec);
    if (!dataset.ok()) return absl::OkStatus();
    {
      const MutexLock lock((*dataset)->mutex);
      (*dataset)->dropped = true;  // stores that are open still have it
    }
    const MutexLock lock(disk_->mutex);
    disk_->datasets.erase(spec.incarnation);
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    return Open<RowStore, ToyRows>(spec);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    return Open<ObjectStore, ToyObjects>(spec);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return Open<MappingStore, ToyMappings>(spec);
  }

  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    const auto dataset = Find(spec);
    if (!dataset.ok()) return dataset.status();
    if (progress && !progress(0, 1)) return absl::CancelledError("reclaim: it was stopped");
    const MutexLock lock((*dataset)->mutex);
    RowModel& rows = (*dataset)->rows;
    const uint64_t unexpired = CountCells(rows, 0, spec.ttl_ms);
    const ReclaimResult result{.expired_cells = CountCells(rows, 0, 0) - unexpired,
                               .surplus_cells = unexpired - CountCells(rows, spec.max_versions, spec.ttl_ms)};
    rows.Reclaim(WallClockMs());
    return result;
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override {
    const auto dataset = Find(spec);
    if (!dataset.ok()) return dataset.status();
    const MutexLock lock((*dataset)->mutex);
    DatasetStats stats{.approximate_entries =
                           CountCells((*dataset)->rows, 0, 0) + (*dataset)->objects.size()};
    for (const auto& [from, entries] : (*dataset)->mappings) stats.approximate_entries += entries.size();
    stats.approximate_bytes = stats.approximate_entries * 100;
    return stats;
  }
  void Describe(MetricsSink& /*sink*/) const override {}

 private:
  /// Returns a dataset, with these settings in force; DATA_LOSS if it is not there.
  absl::StatusOr<std::shared_ptr<ToyDataset>> Find(const DatasetSpec& spec) {
    const MutexLock lock(disk_->mutex);
    const auto found = disk_->datasets.find(spec.incarnation);
    if (found == disk_->datasets.end())
      return absl::DataLossError(fmt::format("dataset: the data of '{}' is not here", spec.name));
    const MutexLock dataset_lock(found->second->mutex);
    found->second->rows.spec = spec;
    return found->second;
  }
  template <typename Interface, typename Store>
  absl::StatusOr<std::shared_ptr<Interface>> Open(const DatasetSpec& spec) {
    auto dataset = Find(spec);
    if (!dataset.ok()) return dataset.status();
    return std::make_shared<Store>(*std::move(dataset));
  }

  const std::shared_ptr<ToyDisk> disk_;
};

}  // namespace

std::unique_ptr<Backend> OpenToyBackend(std::shared_ptr<ToyDisk> disk) {
  return std::make_unique<ToyBackend>(std::move(disk));
}

}  // namespace kvstore::testing
