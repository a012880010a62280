#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "backup/object_sender.h"
#include "base/mutex.h"

namespace kvstore::fleet_backup {

/// Packs the pieces of a stream and makes sure that a store of backups has them, in threads of its own, while
/// the caller reads on: a server's program that nobody reads would fall behind the server. Add and Finish are
/// called by one thread.
class PieceSender {
 public:
  /// sender  must outlive it.
  explicit PieceSender(backup::ObjectSender& sender);
  /// Waits until the threads have ended; what was not sent yet is not sent any more.
  ~PieceSender();
  PieceSender(const PieceSender&) = delete;
  PieceSender& operator=(const PieceSender&) = delete;

  /// Takes the next piece. Waits while as many wait as there are threads. Returns the first error of any
  /// piece.
  absl::Status Add(std::string piece);
  /// Waits until all pieces are there, and returns their files in order (PiecePath).
  absl::StatusOr<std::vector<backup::BackedUpFile>> Finish();

 private:
  void Run();

  backup::ObjectSender& sender_;
  size_t added_ = 0;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<size_t, std::string>> waiting_ ABSL_GUARDED_BY(mutex_);  // pieces by their numbers
  std::vector<backup::BackedUpFile> files_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // no more pieces come
  std::vector<std::thread> threads_;
};

/// "stream/000001": the path of a piece in its backup. The first one has the number 0.
std::string PiecePath(size_t number);
/// Whether a file of a backup is a piece.
bool IsPiece(const backup::BackedUpFile& file);

/// A piece as an object: one frame of zstd.
std::string PackPiece(const std::string& piece);
/// Returns the bytes of an object that PackPiece made; DATA_LOSS if it is none.
absl::StatusOr<std::string> UnpackPiece(std::string_view packed);

}  // namespace kvstore::fleet_backup
