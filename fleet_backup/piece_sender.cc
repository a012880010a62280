#include "fleet_backup/piece_sender.h"

#include <fmt/format.h>
#include <zstd.h>

#include "backup/parallel.h"
#include "fleet_backup/piece_cutter.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::fleet_backup {
namespace {

constexpr std::string_view kPieces = "stream/";
constexpr int kPieceLevel = 3;

}  // namespace

PieceSender::PieceSender(backup::ObjectSender& sender) : sender_(sender) {
  const CallLimits limits = CallScope::Current();
  for (size_t i = 0; i < backup::kSent; ++i) {
    threads_.emplace_back([this, limits] {
      const CallScope scope(limits);
      Run();
    });
  }
}

PieceSender::~PieceSender() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void PieceSender::Run() {
  for (;;) {
    std::pair<size_t, std::string> next;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !ending_) lock.Wait(changed_);
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    changed_.notify_all();
    const absl::Status call = CheckCall();
    auto kept = call.ok() ? sender_.Keep(PiecePath(next.first), PackPiece(next.second)) : call;
    const MutexLock lock(mutex_);
    if (kept.ok()) {
      files_[next.first] = *std::move(kept);
    } else if (status_.ok()) {
      status_ = kept.status();
    }
  }
}

absl::Status PieceSender::Add(std::string piece) {
  {
    MutexLock lock(mutex_);
    while (waiting_.size() >= threads_.size() && status_.ok()) lock.Wait(changed_);
    if (!status_.ok()) return status_;
    files_.emplace_back();
    waiting_.emplace_back(added_++, std::move(piece));
  }
  changed_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<backup::BackedUpFile>> PieceSender::Finish() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  const MutexLock lock(mutex_);
  if (!status_.ok()) return status_;
  return std::move(files_);
}

std::string PiecePath(size_t number) { return fmt::format("{}{:06}", kPieces, number + 1); }

bool IsPiece(const backup::BackedUpFile& file) { return file.path.starts_with(kPieces); }

std::string PackPiece(const std::string& piece) {
  std::string packed(ZSTD_compressBound(piece.size()), '\0');
  // It fails only if there is too little room.
  packed.resize(ZSTD_compress(packed.data(), packed.size(), piece.data(), piece.size(), kPieceLevel));
  return packed;
}

absl::StatusOr<std::string> UnpackPiece(std::string_view packed) {
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  // Checked before memory is taken for it. The two values for errors are larger, too.
  if (size > PieceCutter::kMostBytes) return absl::DataLossError("it is not a piece of a stream");
  std::string piece(size, '\0');
  if (ZSTD_decompress(piece.data(), piece.size(), packed.data(), packed.size()) != size) {
    return absl::DataLossError("it is not what it was when it was packed");
  }
  return piece;
}

}  // namespace kvstore::fleet_backup
