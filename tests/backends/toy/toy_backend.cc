#include "tests/backends/toy/toy_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "backend_api/page_builder.h"
#include "backend_api/row_rules.h"
#include "backend_api/scan_budget.h"
#include "base/clock.h"
#include "idgen/object_id.h"
#include "json/json.h"

namespace kvstore::testing {
namespace {

uint64_t NextTimestamp(ToyDataset& data) { return data.clock = std::max(data.clock + 1, WallClockMs()); }

/// A dataset of a disk.
struct ToyHandle {
  /// Does work on it, under the lock. DATA_LOSS if the dataset is not there, or no more.
  template <typename Work>
  std::invoke_result_t<Work, ToyDataset&> Use(const Work& work) const {
    const MutexLock lock(disk->mutex);
    const auto found = disk->datasets.find(spec.incarnation);
    if (found != disk->datasets.end()) return work(found->second);
    return absl::DataLossError(fmt::format("dataset: the data of '{}' is not here", spec.name));
  }

  std::shared_ptr<ToyDisk> disk;
  DatasetSpec spec;
};

bool Names(const std::optional<std::vector<std::string>>& columns, const std::string& column) {
  return !columns || std::ranges::find(*columns, column) != columns->end();
}

RowPage ReadPage(const ToyDataset& data, const std::string& row, const ReadOptions& options,
                 const std::optional<RowPosition>& after) {
  const PageQuery query(options, OldestVisible(data.spec.ttl_ms, WallClockMs()), data.spec.max_versions);
  PageBuilder builder(query, after);
  for (auto at = data.cells.lower_bound({row, after ? after->column : "", 0}); at != data.cells.end(); ++at) {
    const auto& [key, column, age] = at->first;
    if (key != row) break;
    if (!Names(options.columns, column) || (after && after->cells == 0 && after->column == column)) continue;
    const auto verdict = builder.Inspect(column, ~age, at->second.size());
    if (verdict.wants == PageBuilder::Wants::kNothing) break;
    if (verdict.take) builder.Add(column, ~age, at->second);
  }
  return builder.Finish();
}

class ToyScan : public RowScan, public ToyHandle {
 public:
  ToyScan(const ToyHandle& handle, RowRange range, const ScanOptions& options,
          std::optional<ScanPosition> after)
      : ToyHandle(handle),
        range_(std::move(range)),
        options_(EachRow(options)),
        position_(std::move(after)) {}
  absl::StatusOr<bool> Next(ScannedRow& row) override {
    return Use([&](const ToyDataset& data) -> absl::StatusOr<bool> {
      for (;;) {
        const bool inside = position_ && position_->inside;
        // No key is between that of a row and the same with a zero.
        const std::string next =
            position_ ? position_->row + std::string(inside ? 0 : 1, '\0') : range_.start;
        const auto at = data.cells.lower_bound({next, "", 0});
        if (at == data.cells.end()) return false;
        const std::string& key = std::get<0>(at->first);
        if (!range_.end.empty() && key >= range_.end) return false;
        const bool resumes = inside && position_->row == key;
        RowPage page = ReadPage(data, key, options_, resumes ? position_->inside : std::nullopt);
        row = {key, std::move(page.items), page.next.has_value()};
        position_ = ScanPosition{.row = key, .inside = std::move(page.next)};
        if (!row.items.empty()) return true;
      }
    });
  }
  std::optional<ScanPosition> position() const override { return position_; }

 private:
  const RowRange range_;
  const ReadOptions options_;
  std::optional<ScanPosition> position_;
};

absl::StatusOr<Object> FindObject(const ToyDataset& data, uint64_t id, bool include_inactive) {
  const auto found = data.objects.find(id);
  if (found == data.objects.end() || (!include_inactive && IsInactive(found->second.data)))
    return absl::NotFoundError(fmt::format("object_id: there is no object {}", id));
  return found->second;
}

/// A dataset of any shape.
class ToyStore : public RowStore, public ObjectStore, public MappingStore, public ToyHandle {
 public:
  explicit ToyStore(ToyHandle handle) : ToyHandle(std::move(handle)) {}

  absl::StatusOr<std::vector<Partition>> Partitions(size_t /*wanted*/) override {
    return std::vector<Partition>{{.name = "all", .range = {}}};
  }

  // ---- rows ----

  absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                              const std::optional<RowPosition>& after) override {
    return Use([&](const ToyDataset& data) -> absl::StatusOr<RowPage> {
      return ReadPage(data, std::string(row), options, after);
    });
  }
  absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) override {
    return Use([&](ToyDataset& data) -> absl::StatusOr<PutResult> {
      if (options.condition) {
        const ReadOptions newest{.columns = {{std::string(options.condition->column)}}};
        const RowPage page = ReadPage(data, std::string(row), newest, std::nullopt);
        std::optional<std::string_view> value;
        if (!page.items.empty()) value = page.items[0].cells[0].value;
        if (auto status = CheckCondition(*options.condition, value); !status.ok()) return status;
      }
      PutResult result;
      if (std::ranges::any_of(cells, [](const CellWrite& cell) { return !cell.timestamp; })) {
        result.timestamp = NextTimestamp(data);
        while (Collides(cells, *result.timestamp)) result.timestamp = NextTimestamp(data);
      }
      for (const CellWrite& cell : cells) {
        const uint64_t timestamp = cell.timestamp ? *cell.timestamp : *result.timestamp;
        data.cells[{std::string(row), std::string(cell.column), ~timestamp}] = cell.value;
      }
      return result;
    });
  }
  absl::Status Delete(std::string_view row, const DeleteOptions& options) override {
    return Use([&](ToyDataset& data) -> absl::Status {
      if (options.cells && data.spec.max_versions != 0)
        return absl::FailedPreconditionError("cells: max_versions must be 0 to delete single cells");
      for (const CellName& cell : options.cells.value_or(std::vector<CellName>()))
        data.cells.erase({std::string(row), cell.column, ~cell.timestamp});
      auto at = data.cells.lower_bound({std::string(row), "", 0});
      while (!options.cells && at != data.cells.end() && std::get<0>(at->first) == row)
        at = Names(options.columns, std::get<1>(at->first)) ? data.cells.erase(at) : std::next(at);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange& range, const ScanOptions& options,
                                                const std::optional<ScanPosition>& after) override {
    if (!range.shard.empty()) return absl::InvalidArgumentError("partition: this store has no shards");
    return std::make_unique<ToyScan>(*this, range, options, after);
  }

  // ---- objects ----

  absl::StatusOr<uint64_t> Create(std::string_view text, const CreateOptions& options) override {
    return Use([&](ToyDataset& data) -> absl::StatusOr<uint64_t> {
      const uint32_t shard = options.near ? ObjectId::ShardOf(*options.near) : options.shard.value_or(0);
      const std::string request = fmt::format("{}/{}", shard, options.request_id);
      if (const auto made = data.requests.find(request); made != data.requests.end()) return made->second;
      const auto id = ObjectId::Make(shard, data.spec.type, data.locals[shard] + 1);
      if (!id.ok()) return absl::ResourceExhaustedError("shard: all of its local IDs are used");
      ++data.locals[shard];
      data.objects[id->value()] = {id->value(), std::string(text), NextTimestamp(data)};
      if (!options.request_id.empty()) data.requests[request] = id->value();
      return id->value();
    });
  }
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) override {
    return Use([&](const ToyDataset& data) { return FindObject(data, id, options.include_inactive); });
  }
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions& options) override {
    return Use([&](ToyDataset& data) -> absl::StatusOr<Object> {
      const auto object = FindObject(data, id, options.include_inactive);
      if (!object.ok()) return object;
      if (options.expected_timestamp.value_or(object->timestamp) != object->timestamp)
        return absl::FailedPreconditionError(fmt::format("expected_timestamp: object {} was changed", id));
      auto text = transform(object->data);
      if (!text.ok()) return text.status();
      return data.objects[id] = {id, *std::move(text), NextTimestamp(data)};
    });
  }
  absl::Status Erase(uint64_t id) override {
    return Use([&](ToyDataset& data) -> absl::Status {
      const auto object = FindObject(data, id, /*include_inactive=*/true);
      if (object.ok()) data.objects.erase(id);
      return object.status();
    });
  }
  absl::StatusOr<ObjectScanPage> Scan(const IdRange& range, const ObjectScanOptions& options) override {
    return Use([&](const ToyDataset& data) -> absl::StatusOr<ObjectScanPage> {
      ObjectScanPage page;
      size_t bytes = 0;
      const auto last = data.objects.lower_bound(range.end);
      auto at = data.objects.lower_bound(range.start);
      for (; at != last && page.objects.size() < options.limit; ++at) {
        const Object& object = at->second;
        if (!page.objects.empty() && bytes + object.data.size() > options.max_bytes) break;
        if (object.id > range.start && IsScanBudgetSpent()) break;
        SpendScanBudget(1);
        if (!options.include_inactive && IsInactive(object.data)) continue;
        bytes += object.data.size();
        page.objects.push_back(object);
      }
      if (at != last) page.next = at->first;
      return page;
    });
  }

  // ---- mappings ----

  absl::Status Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) override {
    return Use([&](ToyDataset& data) {
      data.mappings[{from, to}] = sequence.value_or(WallClockMs());
      return absl::OkStatus();
    });
  }
  absl::StatusOr<bool> Remove(uint64_t from, uint64_t to) override {
    return Use([&](ToyDataset& data) -> absl::StatusOr<bool> {
      return data.mappings.erase({from, to}) == 1;
    });
  }
  absl::StatusOr<MappingList> List(uint64_t from, const MappingQuery& query) override {
    return Use([&](const ToyDataset& data) -> absl::StatusOr<MappingList> {
      const auto before = [&](const MappingEntry& a, const MappingEntry& b) {
        const auto& [first, second] = query.descending ? std::tie(b, a) : std::tie(a, b);
        return std::tie(first.sequence, first.to) < std::tie(second.sequence, second.to);
      };
      std::vector<MappingEntry> all;
      const auto end = data.mappings.lower_bound({from + 1, 0});
      for (auto at = data.mappings.lower_bound({from, 0}); at != end; ++at)
        all.push_back({at->first.to, at->second});
      std::ranges::sort(all, before);
      auto first = query.after ? std::ranges::upper_bound(all, *query.after, before) : all.begin();
      first += static_cast<ptrdiff_t>(std::min<uint64_t>(query.offset, all.end() - first));
      const auto last = first + std::min<ptrdiff_t>(query.limit, all.end() - first);
      return MappingList{{first, last}, last != all.end()};
    });
  }
  absl::StatusOr<uint64_t> Count(uint64_t from) override {
    return Use([&](const ToyDataset& data) -> absl::StatusOr<uint64_t> {
      return static_cast<uint64_t>(
          std::distance(data.mappings.lower_bound({from, 0}), data.mappings.lower_bound({from + 1, 0})));
    });
  }
  absl::StatusOr<MappingScanPage> Scan(const MappingPosition& start, uint64_t end, uint32_t limit) override {
    return Use([&](const ToyDataset& data) -> absl::StatusOr<MappingScanPage> {
      MappingScanPage page;
      const auto last = data.mappings.lower_bound({end, 0});
      auto at = data.mappings.lower_bound(start);
      for (; at != last && page.entries.size() < limit; ++at) {
        if (at->first > start && IsScanBudgetSpent()) break;
        SpendScanBudget(1);
        page.entries.push_back({at->first.from, at->first.to, at->second});
      }
      if (at != last) page.next = at->first;
      return page;
    });
  }
};

class ToyBackend : public Backend {
 public:
  explicit ToyBackend(std::shared_ptr<ToyDisk> disk) : disk_(std::move(disk)) {}

  Capabilities capabilities() const override { return {.rows = true, .objects = true, .mappings = true}; }

  absl::Status CreateDataset(const DatasetSpec& spec) override {
    const MutexLock lock(disk_->mutex);
    disk_->datasets.try_emplace(spec.incarnation);
    return absl::OkStatus();
  }
  absl::Status AlterDataset(const DatasetSpec& spec) override {
    return ToyHandle{disk_, spec}.Use([&](ToyDataset& data) {
      data.spec = spec;
      return absl::OkStatus();
    });
  }
  absl::Status DropDataset(const DatasetSpec& spec) override {
    const MutexLock lock(disk_->mutex);
    disk_->datasets.erase(spec.incarnation);
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override { return Open(spec); }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    return Open(spec);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return Open(spec);
  }

  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    if (progress && !progress(0, 1)) return absl::CancelledError("reclaim: it was stopped");
    return ToyHandle{disk_, spec}.Use([&](ToyDataset& data) -> absl::StatusOr<ReclaimResult> {
      ReclaimResult result;
      std::pair<std::string, std::string> column;
      uint32_t seen = 0;  // of the column
      std::erase_if(data.cells, [&](const auto& cell) {
        const auto& [row, name, age] = cell.first;
        if (column != std::pair(row, name)) std::tie(column, seen) = std::tuple(std::pair(row, name), 0);
        const bool expired = ~age < OldestVisible(spec.ttl_ms, WallClockMs());
        const bool surplus = !expired && spec.max_versions != 0 && ++seen > spec.max_versions;
        (expired ? result.expired_cells : result.surplus_cells) += expired || surplus ? 1 : 0;
        return expired || surplus;
      });
      return result;
    });
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override {
    return ToyHandle{disk_, spec}.Use([](const ToyDataset& data) -> absl::StatusOr<DatasetStats> {
      const uint64_t entries = data.cells.size() + data.objects.size() + data.mappings.size();
      return DatasetStats{.approximate_bytes = entries * 100, .approximate_entries = entries};
    });
  }
  void Describe(MetricsSink& /*sink*/) const override {}

 private:
  absl::StatusOr<std::shared_ptr<ToyStore>> Open(const DatasetSpec& spec) {
    if (auto status = AlterDataset(spec); !status.ok()) return status;
    return std::make_shared<ToyStore>(ToyHandle{disk_, spec});
  }

  const std::shared_ptr<ToyDisk> disk_;
};

}  // namespace

std::unique_ptr<Backend> OpenToyBackend(std::shared_ptr<ToyDisk> disk) {
  return std::make_unique<ToyBackend>(std::move(disk));
}

}  // namespace kvstore::testing
