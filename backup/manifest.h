#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/local_id_floors.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/shard_space.h"

namespace kvstore::backup {

/// A file of a backup.
struct BackedUpFile {
  /// Where it belongs in the folder of a store, "rocksdb/000012.sst"; of a dataset, a name that tells it from
  /// the others, "units/00003-00001".
  std::string path;
  std::string blob;  ///< The object that has its bytes.
  uint64_t size = 0;
  std::string checksum;  ///< As BlobChecksum gives it (blobstore/blob_checksum.h).

  bool operator==(const BackedUpFile&) const = default;
};

/// The part of a manifest that only a backup of one dataset has. The files of such a backup hold units
/// (units_file.h).
struct DatasetPart {
  DatasetSpec spec;              ///< The dataset as it was: its name, backend and settings.
  uint64_t as_of_ms = 0;         ///< Cells that had expired by then are not in the backup.
  uint64_t units = 0;            ///< How many there are.
  uint64_t timestamp = 0;        ///< No row had a higher one that the store assigned; 0 for other shapes.
  LocalIdFloors next_local_ids;  ///< Objects: UnitReader::NextLocalIds.

  bool operator==(const DatasetPart&) const = default;
};

/// Shards first..last, both included, of one of the two spaces.
struct ShardSpan {
  ShardSpace space = ShardSpace::kId;
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const ShardSpan&) const = default;
};

/// The part of a manifest that only a backup of a MySQL server of a fleet has. The files of such a backup are
/// pieces of a stream of mariadb-backup (fleet_backup/host_create.h), and a copy of what processes shared in
/// ZooKeeper.
struct ServerPart {
  std::string host;     ///< The server, as the shard maps name it.
  std::string master;   ///< The master of its pair at that time.
  std::string slave;    ///< The slave.
  uint64_t domain = 0;  ///< The pair's gtid_domain_id.
  std::string gtid;     ///< The position up to which the backup has all transactions: "1-1-17,2-3-4".
  std::vector<ShardSpan> shards;  ///< Those that the maps had on the pair.
  uint64_t bytes = 0;             ///< The size of the stream before it was compressed.

  bool operator==(const ServerPart&) const = default;
};

/// Describes a backup and lists its files: those of an embedded store's folder or, if `dataset` is there, the
/// units of one dataset, or, if `server` is there, the pieces of a MySQL server.
struct Manifest {
  std::string id;
  uint64_t began_ms = 0;     ///< Every write that was acknowledged before this time is in the backup.
  uint64_t finished_ms = 0;  ///< When the manifest was put.
  std::string host;          ///< The host and the process that made it, for people.
  std::string version;       ///< The version of KVStore that made it.
  std::string engine;        ///< The engine or the format of the files: "rocksdb 7.8.3", "units".
  uint64_t sequence = 0;     ///< The number of the last write that is certainly in it, as the engine counts.
  uint64_t sent_objects = 0;
  uint64_t sent_bytes = 0;  ///< The bytes that the destination lacked, so that the backup had to send them.
  std::vector<BackedUpFile> files;
  std::optional<DatasetPart> dataset;
  std::optional<ServerPart> server;

  /// Bytes of all files.
  uint64_t TotalBytes() const;
  /// The file at this path; null if there is none.
  const BackedUpFile* Find(std::string_view path) const;

  bool operator==(const Manifest&) const = default;
};

/// Encodes a manifest as two lines of JSON: the manifest, and {"sha256": "..."} of the first line without its
/// end. Golden tests pin this form.
std::string EncodeManifest(const Manifest& manifest);

/// Decodes a manifest, whose bytes anybody may have written.
///
/// id  The backup that it must be of.
///
/// DATA_LOSS if it is damaged, or if a path could lead out of a folder, is there twice, or is a folder of
/// another; FAILED_PRECONDITION if a newer version wrote it. The message begins with the name of the blob.
absl::StatusOr<Manifest> DecodeManifest(std::string_view text, std::string_view id);

}  // namespace kvstore::backup
