#include "reports/compaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "reports/batch_memory.h"
#include "reports/chunk_number.h"
#include "reports/deletes.h"
#include "reports/rollup_rows.h"
#include "reports/row_list.h"
#include "reports/row_merge.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// For how much longer than its batch a chunk is known by those that cover it: a write that has found its
/// batch may take a while until it writes the chunk.
constexpr uint64_t kCoversMarginMs = 86'400'000;

uint64_t OrZero(uint64_t value, uint64_t minus) { return value > minus ? value - minus : 0; }

/// Returns what the new chunk says beside its points.
///
/// batches_since_ms  CompactionOptions::batches_since_ms
ChunkNotes NotesOf(std::span<const LiveChunk> run, const StoredRow& row, bool oldest,
                   uint64_t batches_since_ms) {
  ChunkNotes notes;
  notes.merged = ChunkStretch{run.front().stretch.oldest, run.back().stretch.newest};
  std::set<ChunkName> present;
  for (const StoredChunk& chunk : row.chunks) present.insert(chunk.name);
  const uint64_t remembered = OrZero(batches_since_ms, kCoversMarginMs);
  std::set<ChunkName> covers;
  for (const LiveChunk& live : run) {
    const ChunkNotes& before = live.chunk.directory().notes;
    if (before.repeatable) covers.insert(live.stored->name);
    for (const ChunkName& name : before.covers) {
      if (present.contains(name) || TimeOfName(name) >= remembered) covers.insert(name);
    }
    // Without anything older there is nothing left for the deletes to remove.
    if (!oldest) notes.deletes.insert(notes.deletes.end(), before.deletes.begin(), before.deletes.end());
  }
  notes.covers.assign(covers.begin(), covers.end());
  return notes;
}

absl::StatusOr<PointBlock> MergeRun(const std::vector<LiveChunk>& run, bool oldest) {
  size_t keys = 0;
  for (const LiveChunk& live : run) keys = std::max(keys, live.chunk.directory().segment_values.size());
  PointBlock block(run.front().chunk.directory().kind, static_cast<uint32_t>(keys));
  KV_ASSIGN_OR_RETURN(const auto merge, RowMerge::Make(run, static_cast<uint32_t>(keys), nullptr));
  SeriesPoints points;
  for (uint32_t series = 0;; ++series) {
    if (series % kSeriesOfLook == 0) KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(const bool more, merge->Next());
    if (!more) return block;
    KV_RETURN_IF_ERROR(merge->Read(points));
    if (points.size() == 0) continue;
    if (oldest) std::fill(points.adds.begin(), points.adds.end(), uint8_t{0});
    block.Append(merge->segments(), std::move(points));
  }
}

absl::Status DeleteCovered(const Metadata& metadata, const StoredRow& row, const std::set<ChunkName>& live) {
  DeleteOptions options{.columns = std::vector<std::string>()};
  for (const StoredChunk& chunk : row.chunks) {
    if (!live.contains(chunk.name)) options.columns->push_back(chunk.name);
  }
  if (options.columns->empty()) return absl::OkStatus();
  return metadata.store().DeleteRow(metadata.dataset(), EncodeRowKey(row.key), options);
}

/// False if the row has changed hands since it was read.
absl::StatusOr<bool> PutCompacted(const Metadata& metadata, const StoredRow& row, const ChunkName& name,
                                  const std::string& bytes) {
  uint64_t generation = 0;
  if (row.generation) {
    // Any other text than a number starts again; what counts is that it differs from the one before.
    for (const char c : *row.generation) generation = generation * 10 + static_cast<uint64_t>(c - '0') % 10;
  }
  const std::string next = fmt::format("{}", generation + 1);
  std::vector<CellWrite> cells = {{name, bytes, std::nullopt}, {kGenerationColumn, next, std::nullopt}};
  // The very cell that is there: no row has chunks without a version, even if this one expires just now.
  if (row.version) cells.push_back({kVersionColumn, row.version->name, row.version->timestamp});
  WriteOptions options{.condition = Condition{.column = kGenerationColumn}};
  if (row.generation) options.condition->equals = *row.generation;
  const auto put = metadata.store().PutRow(metadata.dataset(), EncodeRowKey(row.key), cells, options);
  if (put.ok()) return true;
  if (absl::IsAlreadyExists(put.status()) || absl::IsFailedPrecondition(put.status())) return false;
  return put.status();
}

/// Whether a chunk has numbers to be added.
bool Adds(const LiveChunk& live) {
  const ChunkDirectory& directory = live.chunk.directory();
  return directory.kind == MetricKind::kValue && directory.writes != ChunkDirectory::Writes::kReplace;
}

/// Whether no point of a chunk has a real number; a chunk without points has none.
bool HasIntegersOnly(const ChunkDirectory& directory) {
  return directory.points == 0 || directory.all_integers;
}

/// Compacts a row until nothing is left to be merged.
absl::Status CompactFully(const Metadata& metadata, const RowKey& key, const CompactionOptions& options,
                          CompactionResult& result) {
  const size_t least = std::max<size_t>(options.min_chunks, 2);
  uint64_t bytes_after = 0;
  for (bool first = true;; first = false) {
    KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(const RowState before, ReadRowState(metadata.store(), metadata.dataset(), key));
    KV_ASSIGN_OR_RETURN(const StoredRow row, ReadStoredRow(metadata.store(), metadata.dataset(), key));
    // Somebody else compacts the row just now: pieces of it are from before and from after.
    if (row.generation != before.generation) break;
    CompactionResult once;
    KV_RETURN_IF_ERROR(CompactRow(metadata, row, options, once));
    if (first) {
      result.rows += once.rows;
      result.bytes_before += once.bytes_before;
    }
    bytes_after = once.bytes_after;
    result.chunks_merged += once.chunks_merged;
    result.chunks_written += once.chunks_written;
    const size_t left = row.chunks.size() - once.chunks_merged + once.chunks_written;
    if (once.chunks_written == 0 || left < least) break;
  }
  result.bytes_after += bytes_after;
  return absl::OkStatus();
}

}  // namespace

Run ChooseRun(const std::vector<LiveChunk>& live, size_t max_bytes) {
  Run best;
  size_t begin = 0;
  size_t bytes = 0;
  size_t points = 0;
  size_t adders = 0;
  bool exact = true;  // all numbers up to here are integers
  for (size_t end = 1; end <= live.size(); ++end) {
    bytes += live[end - 1].chunk.stored_bytes();
    points += live[end - 1].chunk.directory().points;
    adders += Adds(live[end - 1]) ? 1 : 0;
    exact = exact && HasIntegersOnly(live[end - 1].chunk.directory());
    const auto depends_on_order = [&] { return begin > 0 && adders > 0 && !exact; };
    while (begin < end && (bytes > max_bytes || points > kMaxChunkPoints || depends_on_order())) {
      bytes -= live[begin].chunk.stored_bytes();
      points -= live[begin].chunk.directory().points;
      adders -= Adds(live[begin]) ? 1 : 0;
      ++begin;
    }
    if (end - begin > best.end - best.begin) best = {begin, end};
  }
  return best;
}

absl::Status CompactRow(const Metadata& metadata, const StoredRow& row, const CompactionOptions& options,
                        CompactionResult& result) {
  ++result.rows;
  uint64_t bytes = 0;
  for (const StoredChunk& chunk : row.chunks) bytes += chunk.bytes.size();
  result.bytes_before += bytes;
  KV_ASSIGN_OR_RETURN(std::vector<LiveChunk> live, LiveChunks(row));
  std::set<ChunkName> left;
  for (const LiveChunk& chunk : live) left.insert(chunk.stored->name);
  // A chunk that was missed must not stand before one that is merged: what that has would hide it.
  std::erase_if(live, [&](const LiveChunk& chunk) { return chunk.order().timestamp > row.complete_to; });
  const Run run = ChooseRun(live, options.max_bytes);
  if (run.end - run.begin >= std::max<size_t>(options.min_chunks, 2)) {
    const std::vector<LiveChunk> merged(live.begin() + static_cast<ptrdiff_t>(run.begin),
                                        live.begin() + static_cast<ptrdiff_t>(run.end));
    const bool oldest = run.begin == 0;
    const auto block = MergeRun(merged, oldest);
    // A merge whose numbers pass their range fails the queries for these points, too. It must not keep other
    // rows from being merged.
    if (absl::IsFailedPrecondition(block.status())) {
      result.bytes_after += bytes;
      return DeleteCovered(metadata, row, left);
    }
    if (!block.ok()) return block.status();
    KV_ASSIGN_OR_RETURN(const std::string chunk,
                        EncodeChunk(*block, NotesOf(merged, row, oldest, options.batches_since_ms)));
    // Names grow with time, so that a reader who pages through the row meets the new chunk after the others.
    uint64_t least_ms = 0;
    for (const StoredChunk& stored : row.chunks) least_ms = std::max(least_ms, TimeOfName(stored.name) + 1);
    const ChunkName name = NameOfPart(NewChunkNumber(least_ms), 0);
    bool done = false;
    if (chunk.size() <= kMaxValueBytes) {
      KV_ASSIGN_OR_RETURN(done, PutCompacted(metadata, row, name, chunk));
    }
    if (done) {
      for (const LiveChunk& covered : merged) {
        left.erase(covered.stored->name);
        bytes -= covered.chunk.stored_bytes();
      }
      bytes += chunk.size();
      result.chunks_merged += merged.size();
      ++result.chunks_written;
    }
  }
  result.bytes_after += bytes;
  return DeleteCovered(metadata, row, left);
}

absl::StatusOr<CompactionResult> CompactReport(const Metadata& metadata, const std::string& report,
                                               const CompactionOptions& asked) {
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(report, {}));
  const ReportSettings& settings = info.settings;
  const uint64_t now = WallClockMs();
  const uint64_t oldest_ms = settings.retention_ms == 0 ? 0 : OrZero(now, settings.retention_ms);
  CompactionOptions options = asked;
  // Before the rows: a chunk is covered for as long as its batch can be repeated.
  KV_ASSIGN_OR_RETURN(options.batches_since_ms, ForgetBatches(metadata, settings.id));
  CompactionResult result;
  const auto take_row = [&](const ListedRow& listed) -> absl::Status {
    KV_RETURN_IF_ERROR(CheckCall());
    if ((listed.key.period_start_s + settings.period_s) * 1000 <= oldest_ms) {
      ++result.rows;
      ++result.rows_expired;
      return metadata.store().DeleteRow(metadata.dataset(), EncodeRowKey(listed.key), {});
    }
    if (listed.version.timestamp < options.changed_since_ms) return absl::OkStatus();
    return CompactFully(metadata, listed.key, options, result);
  };
  const auto take = [&](std::span<const ListedRow> rows) -> absl::Status {
    for (const ListedRow& row : rows) {
      KV_RETURN_IF_ERROR(take_row(row));
      if (options.pause) KV_RETURN_IF_ERROR(options.pause());
    }
    return absl::OkStatus();
  };
  absl::Status walked;
  for (uint32_t salt = 0; salt < settings.salts && walked.ok(); ++salt) {
    walked = ListRows(metadata.store(), metadata.dataset(),
                      ReportRange(static_cast<uint8_t>(salt), settings.id), take);
  }
  // A compacted row that was put after a drop has deleted it is there again, also where the walk broke off.
  KV_RETURN_IF_ERROR(RemoveIfDropped(metadata, info));
  KV_RETURN_IF_ERROR(walked);
  // A roll-up may have been made while its row of points was removed.
  if (oldest_ms > 0) KV_RETURN_IF_ERROR(RemoveRollups(metadata, settings, oldest_ms / 1000));
  return result;
}

}  // namespace kvstore::reports
