#pragma once

#include <memory>
#include <vector>

#include "backend_api/row_store.h"
#include "backends/rocksdb/engine/engine.h"

namespace kvstore::rocks {

class Recorder;
struct RowQuery;

/// Rows in a column family: cells under the keys of cell_key.h, the value byte for byte.
class RocksRowStore : public RowStore {
 public:
  RocksRowStore(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family)
      : engine_(std::move(engine)), family_(std::move(family)) {}

  // The methods of RowStore.
#define KV_ROW_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  /// Reads the page that begins after a position, or the first one.
  absl::StatusOr<RowPage> ReadPage(std::string_view row, const RowQuery& query, const RowPosition* after);
  /// Chooses the lock and the clock slot of a row.
  uint64_t Hash(std::string_view row) const;
  /// FAILED_PRECONDITION if the condition does not hold. The caller holds the row's lock exclusively.
  absl::Status Check(std::string_view row, const Condition& condition);
  /// Brings the answers that are kept of a row up to date with a put that was made.
  void UpdateAnswers(std::string_view row, uint64_t hash, const AnswerCache::Change& change,
                     std::span<const CellWrite> cells, uint64_t assigned);
  absl::StatusOr<PutResult> AddPut(std::string_view row, uint64_t hash, std::span<const CellWrite> cells,
                                   Recorder& recorder, rocksdb::WriteBatch& batch);
  void PutGroup(std::span<const RowWrite> writes, std::vector<absl::StatusOr<PutResult>>& results);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
};

}  // namespace kvstore::rocks
