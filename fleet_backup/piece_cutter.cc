#include "fleet_backup/piece_cutter.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvstore::fleet_backup {
namespace {

/// A number for each byte, without any pattern: splitmix64 of 0 to 255. Pieces of later versions must be
/// those of this one, so that they need not be sent again.
constexpr std::array<uint64_t, 256> MakeGears() {
  std::array<uint64_t, 256> gears{};
  for (uint64_t i = 0; i < gears.size(); ++i) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    gears[i] = z ^ z >> 31;
  }
  return gears;
}
constexpr std::array<uint64_t, 256> kGears = MakeGears();

/// The hash depends on so many bytes before it: each step moves those of earlier ones out by a bit.
constexpr size_t kWindowBytes = 64;
/// A piece ends where the highest bits of the hash are zero, as they are once in kMeanBytes bytes.
constexpr uint64_t kMask = ~(UINT64_MAX / PieceCutter::kMeanBytes);

}  // namespace

PieceCutter::PieceCutter(std::function<absl::Status(std::string piece)> take) : take_(std::move(take)) {}

absl::Status PieceCutter::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    // The first bytes of a piece are not hashed: the hash forgets them before the piece has its least size.
    constexpr size_t kFirst = kLeastBytes - kWindowBytes;
    if (piece_.size() < kFirst) {
      const size_t skipped = std::min(bytes.size(), kFirst - piece_.size());
      piece_ += bytes.substr(0, skipped);
      bytes.remove_prefix(skipped);
      hash_ = 0;
      continue;
    }
    size_t taken = 0;
    bool is_end = false;
    while (taken < bytes.size() && !is_end) {
      hash_ = (hash_ << 1) + kGears[static_cast<unsigned char>(bytes[taken])];
      ++taken;
      const size_t size = piece_.size() + taken;
      is_end = (size >= kLeastBytes && (hash_ & kMask) == 0) || size >= kMostBytes;
    }
    piece_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (!is_end) continue;
    if (auto status = take_(std::exchange(piece_, "")); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PieceCutter::Finish() {
  return piece_.empty() ? absl::OkStatus() : take_(std::exchange(piece_, ""));
}

}  // namespace kvstore::fleet_backup
