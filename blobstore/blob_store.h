#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvstore {

/// The size of the pieces in which a blob is sent, read and checked. It is part of how checksums are defined,
/// so it never changes. A blob of at most one piece is sent in one request.
inline constexpr uint64_t kBlobPieceBytes = uint64_t{64} << 20;
/// The largest blob: S3 takes 10,000 pieces.
inline constexpr uint64_t kMaxBlobBytes = 10'000 * kBlobPieceBytes;

enum class PutMode {
  kReplace,   ///< Replaces a blob that has this name.
  kIfAbsent,  ///< ALREADY_EXISTS if a blob has this name; of several writers exactly one succeeds.
};

/// The facts that a store knows about a blob.
struct BlobInfo {
  uint64_t size = 0;  ///< Bytes.
  /// As BlobChecksum (blob_checksum.h) gives it; empty if the store does not keep it.
  std::string checksum;
};

/// A blob in a list.
struct BlobEntry {
  std::string name;
  uint64_t size = 0;         ///< Bytes.
  uint64_t modified_ms = 0;  ///< When it was put, by the store's clock, in ms since 1970.
};

struct BlobPage {
  std::vector<BlobEntry> blobs;  ///< By name, bytewise ascending.
  /// Where the list goes on: the next call's `after`. Empty only at the end; a page may be empty before it.
  std::string next;
};

/// Fills the beginning of the buffer with the next bytes of a blob, and returns how many: at least one, or 0
/// at the end.
using BlobSource = std::function<absl::StatusOr<size_t>(std::span<char> buffer)>;
/// Takes bytes of a blob that stand at `offset`.
using BlobSink = std::function<absl::Status(uint64_t offset, std::string_view bytes)>;

/// How many blobs one call of List returns at most.
inline constexpr size_t kMaxListed = 1000;

/// A place where blobs, which are bytes with a name, are kept: a folder, or a bucket of S3
/// (open_blob_store.h). Thread-safe.
///
/// A blob is there whole or not at all, also after a crash of the writer or of the machine: when a put has
/// returned OK, the blob is durable. The blob of a put that failed is not visible, except that the outcome is
/// unknown after UNAVAILABLE and DEADLINE_EXCEEDED.
///
/// Names have 1 to 512 bytes. They consist of segments of letters, digits, '-', '_' and '.' that are
/// separated by
/// '/'; a segment does not begin with '.' and has at most 200 bytes. No name may be the folder of another:
/// who puts both "a" and "a/b" may get FAILED_PRECONDITION.
///
/// All calls block. They end with the deadline of the caller's CallScope, and when it is cancelled. Their
/// errors: INVALID_ARGUMENT    a name, a prefix or a size against the rules above. NOT_FOUND           there
/// is no such blob. ALREADY_EXISTS      see PutMode. DATA_LOSS           bytes that arrived are not those
/// that were put, by size or checksum. RESOURCE_EXHAUSTED  the disk, the bucket or the quota is full.
/// UNAUTHENTICATED     the key is unknown, its secret is wrong, or it has expired.
/// PERMISSION_DENIED   the key, or the user of this process, lacks a right.
/// FAILED_PRECONDITION the bucket does not exist, is in another region, or this machine's clock is wrong; the
///                     message says what to change.
/// UNAVAILABLE         the store could not be reached, or failed, for as long as the options allow.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  /// Returns the URL that it was opened with. It holds no secrets.
  virtual std::string url() const = 0;

  /// Puts a blob of at most kBlobPieceBytes.
  ///
  /// If the answer to a put with kIfAbsent was lost, the put is repeated and finds a blob: the store then
  /// counts it as this call's if it has the same bytes. Where two writers may put the same bytes and must
  /// know who was first, each adds something unique.
  virtual absl::StatusOr<BlobInfo> Put(std::string_view name, std::string_view bytes, PutMode mode) = 0;

  /// Puts a blob of at most kMaxBlobBytes whose bytes come from `source`, to its end or its first error,
  /// which the call returns.
  ///
  /// source  Another thread may call it, one call at a time, and read ahead. The call does not return while
  /// it
  ///         runs, so a source that may wait for long must be ended by its owner.
  ///
  /// Takes memory for two pieces.
  virtual absl::StatusOr<BlobInfo> PutStream(std::string_view name, const BlobSource& source,
                                             PutMode mode) = 0;

  /// Returns all bytes of a blob, compared with its checksum if the store keeps that.
  ///
  /// max_bytes  FAILED_PRECONDITION if the blob is larger; at most kBlobPieceBytes.
  virtual absl::StatusOr<std::string> Get(std::string_view name, uint64_t max_bytes) = 0;

  /// Returns the bytes of a blob from `offset` on: `bytes` of them, at most kBlobPieceBytes, or fewer where
  /// it ends. They are compared with nothing but the length that the store announces.
  virtual absl::StatusOr<std::string> GetRange(std::string_view name, uint64_t offset, uint64_t bytes) = 0;

  /// Reads a blob of any size, its pieces in parallel, without keeping it in memory.
  ///
  /// expected  Its size, and its checksum unless empty; DATA_LOSS if what was read differs, when all has been
  ///           given to `sink`.
  /// sink      Is called by this thread. The bytes of a piece come in order, pieces in any order. Its error
  ///           ends the call and is returned.
  virtual absl::Status Read(std::string_view name, const BlobInfo& expected, const BlobSink& sink) = 0;

  /// Lists the blobs whose names begin with `prefix`, which may be empty. A blob that was put before the
  /// first page was asked for and is not deleted is listed. Files and objects whose names are not those of
  /// blobs are left out.
  ///
  /// after  Where to begin: empty, or BlobPage::next of the page before.
  /// limit  At most so many blobs, 1 to kMaxListed.
  virtual absl::StatusOr<BlobPage> List(std::string_view prefix, std::string_view after, size_t limit) = 0;

  /// Deletes a blob. OK if there is none.
  virtual absl::Status Delete(std::string_view name) = 0;

  /// Returns the size of a blob, and its checksum if the store keeps that: S3 does, a folder does not.
  virtual absl::StatusOr<BlobInfo> Stat(std::string_view name) = 0;
};

}  // namespace kvstore
