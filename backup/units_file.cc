#include "backup/units_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "backup/zstd_level.h"
#include "base/big_endian.h"

namespace kvstore::backup {
namespace {

constexpr std::string_view kBegin = "KVUNITS1";

absl::Status Damaged(std::string_view problem) {
  return absl::DataLossError(fmt::format("a file of units does not decode: {}", problem));
}

/// Takes pieces from the beginning of a text.
class Pieces {
 public:
  explicit Pieces(std::string_view rest) : rest_(rest) {}

  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }

  std::optional<std::string_view> Bytes(size_t count) {
    if (rest_.size() < count) return std::nullopt;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <typename T>
  std::optional<T> Number() {
    const auto bytes = Bytes(sizeof(T));
    if (!bytes) return std::nullopt;
    return ReadBigEndian<T>(*bytes);
  }
  /// Reads a size, and a text of that size after it.
  std::optional<std::string_view> Sized() {
    const auto size = Number<uint32_t>();
    return size ? Bytes(*size) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

std::optional<Unit> ReadUnit(Pieces& frame) {
  constexpr size_t kLeastCellBytes = sizeof(uint64_t) + sizeof(uint32_t);
  const auto key = frame.Sized();
  const auto count = frame.Number<uint32_t>();
  // Checked before anything is made for the cells.
  if (!key || !count || *count > frame.size() / kLeastCellBytes) return std::nullopt;
  Unit unit{.key = std::string(*key), .cells = {}};
  unit.cells.reserve(*count);
  for (uint32_t i = 0; i < *count; ++i) {
    const auto timestamp = frame.Number<uint64_t>();
    const auto value = frame.Sized();
    if (!timestamp || !value) return std::nullopt;
    unit.cells.push_back({.timestamp = *timestamp, .value = std::string(*value)});
  }
  return unit;
}

}  // namespace

absl::Status UnitsWriter::Add(const Unit& unit) {
  size_t bytes = 2 * sizeof(uint32_t) + unit.key.size();
  for (const Cell& cell : unit.cells) bytes += sizeof(uint64_t) + sizeof(uint32_t) + cell.value.size();
  if (bytes > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "a unit has {} bytes with all its cells; at most {} fit a backup", bytes, kMaxFrameBytes));
  }
  if (!frame_.empty() && frame_.size() + bytes > kFrameBytes) EndFrame();
  AppendBigEndian(frame_, static_cast<uint32_t>(unit.key.size()));
  frame_ += unit.key;
  AppendBigEndian(frame_, static_cast<uint32_t>(unit.cells.size()));
  for (const Cell& cell : unit.cells) {
    AppendBigEndian(frame_, cell.timestamp);
    AppendBigEndian(frame_, static_cast<uint32_t>(cell.value.size()));
    frame_ += cell.value;
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

void UnitsWriter::EndFrame() {
  if (frame_.empty()) return;
  if (file_.empty()) file_ = kBegin;
  std::string packed(ZSTD_compressBound(frame_.size()), '\0');
  // It fails only if there is too little room.
  packed.resize(ZSTD_compress(packed.data(), packed.size(), frame_.data(), frame_.size(), kZstdLevel));
  AppendBigEndian(file_, static_cast<uint32_t>(packed.size()));
  AppendBigEndian(file_, static_cast<uint32_t>(frame_.size()));
  file_ += packed;
  frame_.clear();
}

std::string UnitsWriter::Take() {
  EndFrame();
  bytes_ = 0;
  if (file_.empty()) file_ = kBegin;
  return std::exchange(file_, "");
}

absl::Status ReadUnits(std::string_view file, const std::function<absl::Status(std::vector<Unit>)>& take) {
  Pieces frames(file);
  if (frames.Bytes(kBegin.size()) != kBegin) return Damaged("it does not begin with KVUNITS1");
  std::string last;
  std::string units;
  while (!frames.empty()) {
    const auto packed_bytes = frames.Number<uint32_t>();
    const auto bytes = frames.Number<uint32_t>();
    if (!packed_bytes || !bytes) return Damaged("a frame is cut off");
    const auto packed = frames.Bytes(*packed_bytes);
    if (!packed) return Damaged("a frame is cut off");
    if (*bytes == 0 || *bytes > kMaxFrameBytes) return Damaged("a frame has an impossible size");
    units.resize(*bytes);
    if (ZSTD_decompress(units.data(), units.size(), packed->data(), packed->size()) != units.size()) {
      return Damaged("a frame is not what it was when it was compressed");
    }
    std::vector<Unit> read;
    for (Pieces frame(units); !frame.empty();) {
      auto unit = ReadUnit(frame);
      if (!unit) return Damaged("a unit is cut off");
      if (unit->key <= last) return Damaged("its units are not in order");
      last = unit->key;
      read.push_back(*std::move(unit));
    }
    if (auto status = take(std::move(read)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore::backup
