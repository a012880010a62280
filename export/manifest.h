#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "export/table_columns.h"
#include "kvstore_api/dataset.h"

/// The files of an export. docs/export.md is for those who read exports with other programs.
///
///   ID/manifest.json                     put last: an export without it is not one
///   ID/ATTEMPT/part-00000-00000.parquet  the files that the manifest names
namespace kvstore::exports {

/// A file of an export.
struct ExportedFile {
  std::string path;  ///< Below the export's folder: "1a2b3c4d/part-00000-00000.parquet".
  uint64_t rows = 0;
  uint64_t row_groups = 0;
  uint64_t size = 0;     ///< Bytes.
  std::string checksum;  ///< As BlobChecksum gives it (blobstore/blob_checksum.h).
  friend bool operator==(const ExportedFile&, const ExportedFile&) = default;
};

/// The request for an export: two calls with one token must make the same one.
struct ExportRequest {
  std::string dataset;
  Shape shape = Shape::kRows;
  TableOptions options;
  /// The source of the data: empty: the store; "backup": the newest backup, or the newest one before `at_ms`;
  /// or the ID of a backup.
  std::string from = {};
  uint64_t at_ms = 0;  ///< The time of which the dataset was to be; 0: now, or as the backup has it.
  /// For an export of changes: the ID of the one before, in the same place. Empty: all of the dataset.
  std::string since = {};
  friend bool operator==(const ExportRequest&, const ExportRequest&) = default;
};

struct Manifest {
  std::string id;     ///< The name of the export's folder.
  std::string token;  ///< Empty: none was given.
  ExportRequest request;
  std::string form;          ///< As FormOf gives it.
  bool snapshot = false;     ///< Whether all was read as it was at one moment.
  uint64_t as_of_ms = 0;     ///< Cells that had expired by then are not in it.
  uint64_t began_ms = 0;     ///< When the export began.
  uint64_t finished_ms = 0;  ///< When the manifest was put.
  std::string host;          ///< The user, the host and the process that made it, for people.
  std::string version;       ///< The version of KVStore that made it.
  std::string data;          ///< The folder, below that of the export, that has its files and no others.
  /// The token of changes with which an export of changes goes on after this one; empty: none can.
  std::string changes;
  /// How the dataset limited its visible cells then (DatasetSpec); written with `changes` only. Missing in
  /// manifests of earlier versions.
  std::optional<uint32_t> max_versions = {};
  std::optional<uint64_t> ttl_ms = {};
  std::vector<pipe::Column> columns;
  std::vector<ExportedFile> files;

  uint64_t TotalRows() const;
  uint64_t TotalBytes() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// "ID/manifest.json"
std::string ManifestBlob(std::string_view id);
/// INVALID_ARGUMENT unless it can be the name of an export's folder: 1 to 100 letters, digits, '-' and '_'.
absl::Status CheckExportId(std::string_view id);

/// Encodes a manifest as JSON. Golden tests pin its form.
std::string EncodeManifest(const Manifest& manifest);
/// Decodes a manifest, whose bytes anybody may have written.
///
/// id  The export that it must be of.
///
/// DATA_LOSS if it is damaged, or a path could lead out of the export's folder; FAILED_PRECONDITION if a
/// newer version wrote it. The message begins with the name of the blob.
absl::StatusOr<Manifest> DecodeManifest(std::string_view text, std::string_view id);

/// Reads the manifest of an export. NOT_FOUND if there is none of that ID; others as DecodeManifest.
absl::StatusOr<Manifest> ReadManifest(BlobStore& blobs, std::string_view id);

}  // namespace kvstore::exports
