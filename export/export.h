#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "export/export_source.h"
#include "export/manifest.h"
#include "kvstore_api/types.h"

namespace kvstore::exports {

/// How many parts of a dataset are written at a time unless more are asked for. Each takes about 100 MiB of
/// memory, in this process and in a kv-parquet, whatever the size of the dataset.
inline constexpr size_t kUsualLanes = 2;
inline constexpr size_t kMaxLanes = 32;

struct ExportOptions {
  std::string program;  ///< kv-parquet (FindParquetProgram).
  /// Makes a repeated call the same export: its ID. Empty: each call is an export of its own.
  std::string token;
  size_t lanes = kUsualLanes;
  /// The token of changes (TokenOfNow) that was read before the source was opened; empty: no export of
  /// changes can go on after this one.
  std::string changes;
  /// The dataset's, read before the token; for the export of changes after this one, which compares them.
  std::optional<uint32_t> max_versions = {};
  std::optional<uint64_t> ttl_ms = {};
  /// An estimate of all bytes that are read, for `progress`.
  uint64_t total_bytes = 0;
};

/// Returns how many parts a source should have for these lanes, so that they end at nearly the same time.
constexpr size_t PartsFor(size_t lanes) { return 8 * lanes; }

/// INVALID_ARGUMENT unless it can be a token (CheckExportId).
absl::Status CheckToken(const std::string& token);
/// Finds the export that an earlier call with this token has made; nullopt if there is none. INVALID_ARGUMENT
/// as CheckToken; errors of ReadManifest.
absl::StatusOr<std::optional<Manifest>> FindExport(BlobStore& blobs, const std::string& token);
/// ALREADY_EXISTS if the export of a token is not what is asked for now.
absl::Status CheckSame(const Manifest& manifest, const ExportRequest& request);

/// Finds the export `request.since`, with which an export of changes goes on. Errors name the field `since`:
/// NOT_FOUND if there is none; INVALID_ARGUMENT if it is of another dataset, or its table has other columns
/// than this one would have beside `deleted`; FAILED_PRECONDITION if it has no token of changes, or the
/// dataset's max_versions or ttl_ms was another one then; errors of ReadManifest.
///
/// request  Its options must be right for an export of changes (CheckChangeOptions).
/// spec     The dataset as it is now.
absl::StatusOr<Manifest> FindBase(BlobStore& blobs, const ExportRequest& request, const DatasetSpec& spec);

/// Writes a dataset as Parquet files, its parts in parallel, and their manifest last: until that is there,
/// there is no export. The rows of a row group are in the order of the dataset's keys; a file has about 32
/// MiB. The files that a call that failed has put are removed, unless the put of the manifest failed: it may
/// be there all the same, or may still land. The remains of such a call, or of one that was killed, are in a
/// folder that nobody reads unless the manifest names it. If another call with the same token was faster, its
/// export is returned.
///
/// source    with ExportRequest::since, that of OpenChanges.
/// request   what is asked for; its options must be right for the shape (CheckTableOptions).
/// blobs     where to; exports are folders in it.
/// progress  told the bytes that were read, and of all; may be null. Called by one thread at a time.
///
/// Errors are those of the source and of the store of blobs. FAILED_PRECONDITION for a value that has not the
/// type of its column; RESOURCE_EXHAUSTED for a row that is too large.
absl::StatusOr<Manifest> ExportDataset(ExportSource& source, const ExportRequest& request, BlobStore& blobs,
                                       const ExportOptions& options, const Progress& progress = nullptr);

}  // namespace kvstore::exports
