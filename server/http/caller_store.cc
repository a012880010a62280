#include "server/http/caller_store.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "backend_api/batch_bytes.h"
#include "backend_api/outcome.h"
#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "server/call/forbidden_objects.h"

namespace kvstore::server {
namespace {

/// The most that an answer to a batch of reads has, in bytes of names and values; one entry may exceed it.
constexpr size_t kMaxAnswerBytes = size_t{8} << 20;
/// The most that the page of one row of a batch has.
constexpr size_t kMaxRowOfBatchBytes = kMaxAnswerBytes / 16;
/// How many entries of a batch are read together at first; later as many as fill kPieceBytes.
constexpr size_t kFirstTogether = 32;
constexpr size_t kMaxTogether = 2'000;
constexpr size_t kPieceBytes = size_t{1} << 20;

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

/// Returns the limit in bytes of a page. One beyond kMaxPageBytes is a mistake, which the store reports.
size_t Bounded(size_t max_bytes, size_t most = kMaxWireBytes) {
  return max_bytes <= kMaxPageBytes ? std::min(max_bytes, most) : max_bytes;
}

size_t BytesIn(const Row& row) {
  size_t bytes = row.marker.size();
  for (const Item& item : row.items) {
    bytes += item.column.size();
    for (const Cell& cell : item.cells) bytes += cell.value.size();
  }
  return bytes;
}

/// A scan whose rows count as held.
class HoldingCursor : public RowCursor {
 public:
  HoldingCursor(std::unique_ptr<RowCursor> cursor, HeldMemory& memory)
      : cursor_(std::move(cursor)), memory_(memory) {}

  absl::StatusOr<bool> Next(ScannedRow& row) override {
    auto more = cursor_->Next(row);
    if (!more.ok() || !*more) return more;
    if (auto status = memory_.Hold(row.items); !status.ok()) return status;
    return more;
  }
  std::string marker() const override { return cursor_->marker(); }

 private:
  const std::unique_ptr<RowCursor> cursor_;
  HeldMemory& memory_;
};

}  // namespace

void CallerStore::Note(const absl::Status& status) {
  if (migrating_.ok() && IsMigrating(status) && !IsInDoubt(status)) migrating_ = status;
}

template <typename Result, typename Entry, typename Send>
absl::StatusOr<std::vector<Result>> CallerStore::Resume(std::span<const Entry> entries,
                                                        std::vector<Result>& done, const Send& send) {
  if (done.empty()) {
    auto results = send(entries);
    if (!results.ok()) return results;
    done = *std::move(results);
  } else {
    std::vector<Entry> again;
    std::vector<size_t> places;
    for (size_t i = 0; i < done.size(); ++i) {
      if (!IsMigrating(StatusOf(done[i])) || IsInDoubt(StatusOf(done[i]))) continue;
      again.push_back(entries[i]);
      places.push_back(i);
    }
    auto results = send(std::span<const Entry>(again));
    // Some entries are done already, so each of the others gets the error.
    for (size_t i = 0; i < places.size(); ++i)
      done[places[i]] = results.ok() ? std::move((*results)[i]) : Result(results.status());
  }
  for (const Result& result : done) Note(StatusOf(result));
  return done;
}

template <typename Value, typename Entry, typename Read, typename Hold>
absl::StatusOr<std::vector<absl::StatusOr<Value>>> CallerStore::ReadInPieces(std::span<const Entry> entries,
                                                                             const Read& read,
                                                                             const Hold& hold) {
  if (auto status = ValidateBatch(entries.size()); !status.ok()) return status;
  std::vector<absl::StatusOr<Value>> results;
  results.reserve(entries.size());
  size_t bytes = 0;
  size_t together = kFirstTogether;
  const SmallBatches pieces(kPieceBytes);
  while (results.size() < entries.size()) {
    const size_t before = results.size();
    auto some = read(entries.subspan(before, std::min(together, entries.size() - before)));
    if (!some.ok()) return some.status();
    for (absl::StatusOr<Value>& one : *some) {
      // Read together with the others this one was too much. It is the first of the next piece.
      if (IsPaused(one.status()) && results.size() > before) break;
      Note(one.status());
      if (one.ok()) {
        const absl::StatusOr<size_t> held = hold(*one);
        if (!held.ok()) return held.status();
        bytes += *held;
      }
      results.push_back(std::move(one));
      if (bytes > kMaxAnswerBytes) break;
    }
    if (bytes > kMaxAnswerBytes) results.resize(entries.size(), BatchFullError());
    const size_t average = bytes / results.size() + 1;
    together = std::clamp<size_t>(kPieceBytes / average, 1, kMaxTogether);
  }
  return results;
}

// ---- datasets ----

absl::StatusOr<std::vector<DatasetSpec>> CallerStore::ListDatasets() {
  auto specs = router_.ListDatasets();
  if (!specs.ok()) return specs;
  std::erase_if(*specs, [this](const DatasetSpec& spec) {
    return !CheckRight(principal_.get(), spec.name, Right::kRead).ok();
  });
  return specs;
}

absl::StatusOr<ReclaimResult> CallerStore::Compact(std::string_view dataset, const Progress& /*progress*/) {
  return router_.Compact(dataset, progress_);
}

// ---- rows ----

absl::StatusOr<Row> CallerStore::GetRow(std::string_view dataset, std::string_view row,
                                        const ReadOptions& options) {
  ReadOptions bounded = options;
  bounded.max_bytes = Bounded(options.max_bytes);
  auto page = router_.GetRow(dataset, row, bounded);
  if (!page.ok()) return page;
  if (auto status = memory_.Hold(page->items); !status.ok()) return status;
  return page;
}

absl::StatusOr<std::vector<absl::StatusOr<Row>>> CallerStore::GetRows(std::string_view dataset,
                                                                      std::span<const RowRead> reads) {
  const size_t most = reads.size() > 1 ? kMaxRowOfBatchBytes : kMaxWireBytes;
  return ReadInPieces<Row>(
      reads,
      [&](std::span<const RowRead> some) {
        std::vector<RowRead> bounded(some.begin(), some.end());
        for (RowRead& read : bounded) read.options.max_bytes = Bounded(read.options.max_bytes, most);
        return router_.GetRows(dataset, bounded);
      },
      [this](const Row& row) -> absl::StatusOr<size_t> {
        if (auto status = memory_.Hold(row.items); !status.ok()) return status;
        return BytesIn(row);
      });
}

absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> CallerStore::PutRows(
    std::string_view dataset, std::span<const RowWrite> writes) {
  return Resume(writes, puts_,
                [&](std::span<const RowWrite> some) { return router_.PutRows(dataset, some); });
}

absl::StatusOr<std::vector<absl::Status>> CallerStore::DeleteRows(std::string_view dataset,
                                                                  std::span<const RowDelete> deletes) {
  return Resume(deletes, deletes_,
                [&](std::span<const RowDelete> some) { return router_.DeleteRows(dataset, some); });
}

absl::StatusOr<std::unique_ptr<RowCursor>> CallerStore::ScanRows(std::string_view dataset,
                                                                 const RowRange& range,
                                                                 const ScanOptions& options) {
  auto cursor = router_.ScanRows(dataset, range, options);
  if (!cursor.ok()) return cursor;
  return std::make_unique<HoldingCursor>(*std::move(cursor), memory_);
}

// ---- objects ----

absl::StatusOr<uint64_t> CallerStore::CreateObject(std::string_view dataset, std::string_view data,
                                                   const CreateOptions& options) {
  CreateOptions identified = options;
  identified.request_id = request_id_;
  return router_.CreateObject(dataset, data, identified);
}

absl::StatusOr<Object> CallerStore::GetObject(std::string_view dataset, uint64_t id,
                                              const ObjectReadOptions& options) {
  auto object = router_.GetObject(dataset, id, options);
  if (!object.ok()) return object;
  if (auto status = memory_.HoldDocument(object->data); !status.ok()) return status;
  return object;
}

absl::StatusOr<std::vector<absl::StatusOr<Object>>> CallerStore::GetObjects(
    std::string_view dataset, std::span<const uint64_t> ids, const ObjectReadOptions& options) {
  return ReadInPieces<Object>(
      ids, [&](std::span<const uint64_t> some) { return router_.GetObjects(dataset, some, options); },
      [this](const Object& object) -> absl::StatusOr<size_t> {
        if (auto status = memory_.HoldDocument(object.data); !status.ok()) return status;
        return object.data.size();
      });
}

absl::StatusOr<Object> CallerStore::PatchObject(std::string_view dataset, uint64_t id,
                                                std::string_view merge_patch, const UpdateOptions& options) {
  auto object = router_.PatchObject(dataset, id, merge_patch, options);
  if (object.ok()) updated_ = *object;
  return object;
}

absl::StatusOr<ObjectPage> CallerStore::ScanObjects(std::string_view dataset, const IdRange& range,
                                                    const ObjectScanOptions& options) {
  ObjectScanOptions bounded = options;
  bounded.max_bytes = Bounded(options.max_bytes);
  auto page = router_.ScanObjects(dataset, range, bounded);
  if (!page.ok()) return page;
  for (const Object& object : page->objects) {
    if (auto status = memory_.HoldDocument(object.data); !status.ok()) return status;
  }
  return page;
}

// ---- changes ----

absl::StatusOr<ChangePage> CallerStore::ReadChanges(std::string_view dataset, std::string_view from,
                                                    const ChangeOptions& options) {
  ChangeOptions bounded = options;
  bounded.max_bytes = Bounded(options.max_bytes);
  auto page = router_.ReadChanges(dataset, from, bounded);
  if (!page.ok()) return page;
  for (const Change& change : page->changes) {
    size_t bytes = 2 * change.token.size() + 8 * kJsonValueBytes;
    if (const auto* row = std::get_if<RowChange>(&change.what)) {
      bytes += 2 * row->row.size();
      for (const Cell& cell : row->cells) bytes += 2 * cell.value.size() + 3 * kJsonValueBytes;
    }
    if (auto status = memory_.Hold(bytes); !status.ok()) return status;
    const auto* const object = std::get_if<ObjectChange>(&change.what);
    if (object == nullptr || !object->data) continue;
    if (auto status = memory_.HoldDocument(*object->data); !status.ok()) return status;
  }
  return page;
}

// ---- mappings ----

absl::StatusOr<JoinedPage> CallerStore::ListObjects(std::string_view dataset, uint64_t from,
                                                    const MappingListOptions& options) {
  MappingListOptions bounded = options;
  bounded.max_bytes = Bounded(options.max_bytes);
  auto page = router_.ListObjects(dataset, from, bounded);
  if (!page.ok()) return page;
  const auto forbidden = ForbiddenObjects::Of(router_, principal_.get());
  if (!forbidden.ok()) return forbidden.status();
  for (JoinedObject& joined : page->objects) {
    if (forbidden->Contains(joined.entry.to)) joined.object = forbidden->Error();
    Note(joined.object.status());
    if (!joined.object.ok()) continue;
    if (auto status = memory_.HoldDocument(joined.object->data); !status.ok()) return status;
  }
  return page;
}

}  // namespace kvstore::server
