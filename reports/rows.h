#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "reports/chunk.h"
#include "reports/row_key.h"

/// The rows of points as they are stored, and which of their chunks count. A row has chunks, each in a column
/// with its name, and the columns `generation` and `version`.
namespace kvstore::reports {

/// The column that counts the compactions of a row.
inline constexpr char kGenerationColumn[] = "generation";
/// The column with the row's version: the name of a chunk of the row's last put. It is in every put of chunks
/// (RowPuts), so that a row without it has no points, and who reads this small cell alone knows whether
/// anything was written or deleted. Compactions leave it as it is: they change no points.
inline constexpr char kVersionColumn[] = "version";

/// Where the last put of points or deletes stands among those of its row. Two reads of a row that find the
/// same version find the same points.
using RowVersion = ChunkOrder;

struct StoredChunk {
  ChunkName name;
  uint64_t timestamp = 0;
  std::string bytes;
};

struct StoredRow {
  RowKey key;
  std::vector<StoredChunk> chunks;
  std::optional<std::string> generation;
  std::optional<RowVersion> version;
  uint64_t newest = 0;  ///< The greatest timestamp among all of its cells.
  /// Every chunk that the store took up to this time is here. If the row was read in pieces, a chunk that was
  /// written meanwhile may be missing, while another that was written after it is here.
  uint64_t complete_to = UINT64_MAX;
};

/// A chunk that counts: no other has its points.
struct LiveChunk {
  Chunk chunk;
  ChunkStretch stretch;  ///< The stretch that it stands for; a chunk that was never merged stands for itself.
  const StoredChunk* stored = nullptr;

  /// Where it stands among the others.
  const ChunkOrder& order() const { return stretch.newest; }
};

/// The chunks of a row that count, oldest first, all of one kind; they point into `row`. DATA_LOSS names the
/// row and the chunk that does not decode.
absl::StatusOr<std::vector<LiveChunk>> LiveChunks(const StoredRow& row);

/// The row's version by its cell; DATA_LOSS unless that holds the name of a chunk.
absl::StatusOr<RowVersion> VersionOf(const RowKey& key, Cell&& cell);
/// How messages name a row.
std::string RowText(const RowKey& key);

/// Which rows to read: those of one metric under one salt, from one period to another.
struct RowsWanted {
  uint8_t salt = 0;
  uint32_t report = 0;
  uint32_t metric = 0;
  uint64_t first_period_s = 0;  ///< A start of a period.
  uint64_t last_period_s = 0;   ///< Likewise; the last one that is wanted.
  uint64_t period_s = 1;
};

/// The first of `periods` that a time in ms lies in.
uint64_t PeriodOf(int64_t time_ms, uint64_t period_s);

/// Up to so many rows are asked for by their keys, hosts in parallel; where more could be there, ranges are
/// scanned.
inline constexpr uint64_t kMaxListedRows = 1'024;

using TakeRow = std::function<absl::Status(StoredRow&&)>;
/// Called with the bytes of chunks as they are read, before more of the row is; an error from it ends the
/// walk with that error.
using TakeBytes = std::function<absl::Status(uint64_t bytes)>;
/// Called for each part that cannot be read; an error from it ends the walk with that error.
using TakeFailure = std::function<absl::Status(const RowKey& first, const absl::Status& failure)>;

/// Reads rows, and gives each that is there to `take`, in any order. `failed` may be null: then the first
/// error ends the walk. `read` may be null, too.
///
/// max_listed  as kMaxListedRows; tests try both ways.
absl::Status ReadRows(KVStore& store, const std::string& dataset, const RowsWanted& wanted,
                      const TakeRow& take, const TakeFailure& failed, const TakeBytes& read = nullptr,
                      uint64_t max_listed = kMaxListedRows);

/// Reads these rows, and gives those that are there to `take`; otherwise as ReadRows.
absl::Status ReadListedRows(KVStore& store, const std::string& dataset, std::span<const RowKey> rows,
                            const TakeRow& take, const TakeFailure& failed, const TakeBytes& read = nullptr);

/// Scans a range of keys of rows of points. `read` may be null.
absl::Status ScanStoredRows(KVStore& store, const std::string& dataset, const KeyRange& range,
                            const TakeRow& take, const TakeBytes& read = nullptr);

/// One row as it is now; without chunks if there is none. `read` may be null.
absl::StatusOr<StoredRow> ReadStoredRow(KVStore& store, const std::string& dataset, const RowKey& key,
                                        const TakeBytes& read = nullptr);

}  // namespace kvstore::reports
