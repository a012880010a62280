#include "reports/hyperloglog.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "reports/bits.h"
#include "reports/byte_reader.h"
#include "reports/stable_hash.h"

namespace kvstore::reports {
namespace {

constexpr char kDistinctVersion = 1;
constexpr char kSparse = 0;
constexpr char kDense = 1;
constexpr int kRankBits = 6;
/// A double that an integer of 64 bits holds.
constexpr double kMaxEstimate = 9e18;

/// The sum over k of x^(2^k) * 2^(k-1), and x.
double Sigma(double x) {
  if (x == 1.0) return INFINITY;
  double power = 1;
  double sum = x;
  for (double before = -1; sum != before;) {
    x *= x;
    before = sum;
    sum += x * power;
    power += power;
  }
  return sum;
}

double Tau(double x) {
  if (x == 0.0 || x == 1.0) return 0.0;
  double power = 1;
  double sum = 1 - x;
  for (double before = -1; sum != before;) {
    x = std::sqrt(x);
    before = sum;
    power *= 0.5;
    sum -= (1 - x) * (1 - x) * power;
  }
  return sum / 3;
}

absl::Status DamagedDistinct() {
  return absl::DataLossError("a stored sketch of distinct members does not decode");
}

}  // namespace

void HyperLogLog::Add(std::string_view member) {
  const uint64_t hash = StableHash(member);
  const size_t index = hash >> (64 - kIndexBits);
  const uint64_t rest = hash << kIndexBits;
  const int rank = rest == 0 ? kMaxRank : std::countl_zero(rest) + 1;
  ranks_[index] = std::max(ranks_[index], static_cast<uint8_t>(rank));
}

void HyperLogLog::Merge(const HyperLogLog& other) {
  for (size_t i = 0; i < kRegisters; ++i) ranks_[i] = std::max(ranks_[i], other.ranks_[i]);
}

double HyperLogLog::Estimate() const {
  std::array<uint32_t, kMaxRank + 1> counts{};
  for (const uint8_t rank : ranks_) ++counts[rank];
  constexpr double kCount = kRegisters;
  double z = kCount * Tau(1 - counts[kMaxRank] / kCount);
  for (int rank = kMaxRank - 1; rank >= 1; --rank) z = 0.5 * (z + counts[static_cast<size_t>(rank)]);
  z += kCount * Sigma(counts[0] / kCount);
  // Registers that are all full, which no real set fills, would make it infinite.
  return std::min(kCount / (2 * std::log(2.0)) * kCount / z, kMaxEstimate);
}

std::string HyperLogLog::Encode() const {
  std::string bytes = {kDistinctVersion, kSparse};
  constexpr size_t kDenseBytes = 2 + kRegisters * kRankBits / 8;
  size_t next = 0;
  for (size_t i = 0; i < kRegisters; ++i) {
    // Most registers of a small set are zero, and eight of them are passed over at once.
    uint64_t eight = 0;
    if (i % sizeof(eight) == 0) {
      std::memcpy(&eight, ranks_.data() + i, sizeof(eight));
      if (eight == 0) {
        i += sizeof(eight) - 1;
        continue;
      }
    }
    if (ranks_[i] == 0) continue;
    AppendVarint(bytes, i - next);
    bytes.push_back(static_cast<char>(ranks_[i]));
    if (bytes.size() >= kDenseBytes) return EncodeDense();
    next = i + 1;
  }
  return bytes;
}

std::string HyperLogLog::EncodeDense() const {
  BitWriter packed;
  for (const uint8_t rank : ranks_) packed.Write(rank, kRankBits);
  return std::string{kDistinctVersion, kDense} + std::move(packed).Finish();
}

absl::StatusOr<HyperLogLog> HyperLogLog::Decode(std::string_view bytes) {
  if (bytes.size() < 2 || bytes[0] != kDistinctVersion) return DamagedDistinct();
  auto sketch = bytes[1] == kDense ? DecodeDense(bytes.substr(2)) : DecodeSparse(bytes.substr(2));
  // One set has one form; this also refuses a form that is neither.
  if (!sketch.ok() || sketch->Encode() != bytes) return DamagedDistinct();
  return sketch;
}

absl::StatusOr<HyperLogLog> HyperLogLog::DecodeSparse(std::string_view bytes) {
  HyperLogLog sketch;
  ByteReader in(bytes);
  for (uint64_t next = 0; !in.rest().empty();) {
    const uint64_t skipped = in.Varint();
    const uint8_t rank = in.Byte();
    if (in.failed() || skipped >= kRegisters - next || rank == 0 || rank > kMaxRank) return DamagedDistinct();
    sketch.ranks_[next + skipped] = rank;
    next += skipped + 1;
  }
  return sketch;
}

absl::StatusOr<HyperLogLog> HyperLogLog::DecodeDense(std::string_view bytes) {
  HyperLogLog sketch;
  BitReader in(bytes);
  for (uint8_t& rank : sketch.ranks_) {
    rank = static_cast<uint8_t>(in.Read(kRankBits));
    if (rank > kMaxRank) return DamagedDistinct();
  }
  if (in.failed() || in.left() > 0) return DamagedDistinct();
  return sketch;
}

}  // namespace kvstore::reports
