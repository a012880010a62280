#include "backends/remote/stores.h"

#include "backend_api/marker.h"

namespace kvstore::remote {
namespace {

/// A scan on the server, with its markers opened to positions.
class RemoteScan : public RowScan {
 public:
  RemoteScan(std::shared_ptr<KVStore> server, std::unique_ptr<RowCursor> cursor, uint64_t incarnation,
             std::optional<ScanPosition> start)
      : server_(std::move(server)),
        cursor_(std::move(cursor)),
        incarnation_(incarnation),
        start_(std::move(start)) {}

  absl::StatusOr<bool> Next(ScannedRow& row) override { return cursor_->Next(row); }
  std::optional<ScanPosition> position() const override {
    const auto position = OpenScanMarker(incarnation_, cursor_->marker());
    return position.ok() ? std::optional(*position) : start_;
  }

 private:
  const std::shared_ptr<KVStore> server_;
  const std::unique_ptr<RowCursor> cursor_;
  const uint64_t incarnation_;
  const std::optional<ScanPosition> start_;
};

/// Returns the answers of a batch, one for each entry. If the call as a whole failed each entry gets its
/// error.
template <typename Answer>
std::vector<Answer> ForEach(size_t count, absl::StatusOr<std::vector<Answer>> answers) {
  if (answers.ok() && answers->size() != count) {
    answers = absl::InternalError("the server: answered another number of entries than were sent");
  }
  if (answers.ok()) return *std::move(answers);
  return std::vector<Answer>(count, Answer(answers.status()));
}

/// The error for a page of a scan that would let the scan go on where it has been, for ever, or where it does
/// not go.
absl::Status StrayPageError() {
  return absl::InternalError("the server: answered a page of a scan that does not go on inside of its range");
}

}  // namespace

// ---- rows ----

absl::StatusOr<RowPage> RemoteRowStore::Open(std::string_view row, absl::StatusOr<Row> page) const {
  if (!page.ok()) return page.status();
  RowPage opened{.items = std::move(page->items)};
  if (page->marker.empty()) return opened;
  auto position = OpenRowMarker(incarnation_, row, page->marker);
  if (!position.ok()) return position.status();
  opened.next = *std::move(position);
  return opened;
}

absl::StatusOr<RowPage> RemoteRowStore::Get(std::string_view row, const ReadOptions& options,
                                            const std::optional<RowPosition>& after) {
  if (!after && options.marker.empty()) return Open(row, server_->GetRow(dataset_, row, options));
  ReadOptions there = options;
  there.marker = after ? SealRowMarker(incarnation_, row, *after) : "";
  return Open(row, server_->GetRow(dataset_, row, there));
}

absl::StatusOr<PutResult> RemoteRowStore::Put(std::string_view row, std::span<const CellWrite> cells,
                                              const WriteOptions& options) {
  return server_->PutRow(dataset_, row, cells, options);
}

absl::Status RemoteRowStore::Delete(std::string_view row, const DeleteOptions& options) {
  return server_->DeleteRow(dataset_, row, options);
}

std::vector<absl::StatusOr<RowPage>> RemoteRowStore::GetMany(std::span<const RowRead> reads) {
  if (reads.empty()) return {};
  auto rows = ForEach(reads.size(), server_->GetRows(dataset_, reads));
  std::vector<absl::StatusOr<RowPage>> pages;
  pages.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) pages.push_back(Open(reads[i].row, std::move(rows[i])));
  return pages;
}

std::vector<absl::StatusOr<PutResult>> RemoteRowStore::PutMany(std::span<const RowWrite> writes) {
  if (writes.empty()) return {};
  return ForEach(writes.size(), server_->PutRows(dataset_, writes));
}

std::vector<absl::Status> RemoteRowStore::DeleteMany(std::span<const RowDelete> deletes) {
  if (deletes.empty()) return {};
  return ForEach(deletes.size(), server_->DeleteRows(dataset_, deletes));
}

absl::StatusOr<std::vector<Partition>> RemoteRowStore::Partitions(size_t wanted) {
  return server_->ListPartitions(dataset_, wanted);
}

absl::StatusOr<std::unique_ptr<RowScan>> RemoteRowStore::Scan(const RowRange& range,
                                                              const ScanOptions& options,
                                                              const std::optional<ScanPosition>& after) {
  ScanOptions there = options;
  there.marker = after ? SealScanMarker(incarnation_, *after) : "";
  auto cursor = server_->ScanRows(dataset_, range, there);
  if (!cursor.ok()) return cursor.status();
  return std::make_unique<RemoteScan>(server_, *std::move(cursor), incarnation_, after);
}

// ---- objects ----

absl::StatusOr<uint64_t> RemoteObjectStore::Create(std::string_view data, const CreateOptions& options) {
  return server_->CreateObject(dataset_, data, options);
}

absl::StatusOr<Object> RemoteObjectStore::Get(uint64_t id, const ObjectReadOptions& options) {
  return server_->GetObject(dataset_, id, options);
}

std::vector<absl::StatusOr<Object>> RemoteObjectStore::GetMany(std::span<const uint64_t> ids,
                                                               const ObjectReadOptions& options) {
  if (ids.empty()) return {};
  return ForEach(ids.size(), server_->GetObjects(dataset_, ids, options));
}

absl::StatusOr<Object> RemoteObjectStore::Update(uint64_t id, const ObjectTransform& transform,
                                                 const UpdateOptions& options) {
  return server_->UpdateObject(dataset_, id, transform, options);
}

absl::Status RemoteObjectStore::Erase(uint64_t id) {
  return server_->DeleteObject(dataset_, id, /*hard=*/true);
}

absl::StatusOr<ObjectScanPage> RemoteObjectStore::Scan(const IdRange& range,
                                                       const ObjectScanOptions& options) {
  ObjectScanOptions there = options;
  there.marker.clear();
  auto page = server_->ScanObjects(dataset_, range, there);
  if (!page.ok()) return page.status();
  ObjectScanPage opened{.objects = std::move(page->objects), .next = std::nullopt};
  if (page->marker.empty()) return opened;
  const auto next = OpenObjectScanMarker(incarnation_, page->marker);
  if (!next.ok()) return next.status();
  if (*next <= range.start || *next >= range.end) return StrayPageError();
  opened.next = *next;
  return opened;
}

absl::StatusOr<std::vector<Partition>> RemoteObjectStore::Partitions(size_t wanted) {
  return server_->ListPartitions(dataset_, wanted);
}

// ---- mappings ----

absl::Status RemoteMappingStore::Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) {
  return server_->AddMapping(dataset_, from, to, sequence);
}

absl::StatusOr<bool> RemoteMappingStore::Remove(uint64_t from, uint64_t to) {
  return server_->RemoveMapping(dataset_, from, to);
}

absl::StatusOr<MappingList> RemoteMappingStore::List(uint64_t from, const MappingQuery& query) {
  MappingListOptions options{.order = query.descending ? MappingListOptions::Order::kDescending
                                                       : MappingListOptions::Order::kAscending,
                             .limit = query.limit,
                             .offset = query.offset};
  if (query.after) {
    options.marker = SealMappingMarker(incarnation_, from, query.descending, *query.after);
  }
  auto page = server_->ListMapping(dataset_, from, options);
  if (!page.ok()) return page.status();
  return MappingList{.entries = std::move(page->entries), .more = !page->marker.empty()};
}

absl::StatusOr<uint64_t> RemoteMappingStore::Count(uint64_t from) {
  return server_->CountMapping(dataset_, from);
}

absl::StatusOr<MappingScanPage> RemoteMappingStore::Scan(const MappingPosition& start, uint64_t end,
                                                         uint32_t limit) {
  MappingScanOptions options{.limit = limit};
  if (start.to != 0) options.marker = SealMappingScanMarker(incarnation_, start);
  auto page = server_->ScanMappings(dataset_, {.start = start.from, .end = end}, options);
  if (!page.ok()) return page.status();
  MappingScanPage opened{.entries = std::move(page->entries), .next = std::nullopt};
  if (page->marker.empty()) return opened;
  const auto next = OpenMappingScanMarker(incarnation_, page->marker);
  if (!next.ok()) return next.status();
  if (*next <= start || next->from >= end) return StrayPageError();
  opened.next = *next;
  return opened;
}

absl::StatusOr<std::vector<Partition>> RemoteMappingStore::Partitions(size_t wanted) {
  return server_->ListPartitions(dataset_, wanted);
}

}  // namespace kvstore::remote
