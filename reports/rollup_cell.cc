#include "reports/rollup_cell.h"

#include <fmt/format.h>

#include "base/big_endian.h"
#include "reports/byte_reader.h"
#include "reports/crc32c.h"

namespace kvstore::reports {
namespace {

constexpr uint8_t kRollupVersion = 1;
constexpr size_t kRollupHeaderBytes = 5;

/// The cell with this content.
std::string Seal(const RowVersion& made_of, std::string_view content) {
  std::string rest;
  AppendBigEndian(rest, made_of.timestamp);
  rest += made_of.name;
  rest += content;
  std::string bytes;
  bytes.push_back(static_cast<char>(kRollupVersion));
  AppendBigEndian(bytes, Crc32c(rest, Crc32c(bytes)));
  return bytes + rest;
}

/// Reads what stands before the content, and leaves the content in `in`.
absl::StatusOr<RowVersion> Unseal(std::string_view bytes, ByteReader& in) {
  if (bytes.size() < kRollupHeaderBytes) {
    return absl::DataLossError(fmt::format("a roll-up of {} bytes; the shortest has more", bytes.size()));
  }
  const auto version = static_cast<uint8_t>(bytes[0]);
  if (version != kRollupVersion) {
    return absl::DataLossError(
        fmt::format("a roll-up of version {}; this program reads version {}", version, kRollupVersion));
  }
  const std::string_view rest = bytes.substr(kRollupHeaderBytes);
  if (ReadBigEndian<uint32_t>(bytes.substr(1)) != Crc32c(rest, Crc32c(bytes.substr(0, 1)))) {
    return absl::DataLossError("a roll-up's checksum is wrong");
  }
  in = ByteReader(rest);
  const std::string_view timestamp = in.Bytes(8);
  const std::string_view name = in.Bytes(kChunkNameBytes);
  if (in.failed()) return absl::DataLossError("a roll-up ends inside its header");
  return RowVersion{ReadBigEndian<uint64_t>(timestamp), ChunkName(name)};
}

absl::Status DamagedRollup() { return absl::DataLossError("a roll-up's content does not decode"); }

}  // namespace

std::string RollupColumn(uint32_t id, RollupPart part) {
  return fmt::format("{}/{}", id, static_cast<char>(part));
}

std::string EncodeRollupCell(const RowVersion& made_of, std::span<const std::string> chunks) {
  std::string content;
  AppendVarint(content, chunks.size());
  for (const std::string& chunk : chunks) {
    AppendVarint(content, chunk.size());
    content += chunk;
  }
  return Seal(made_of, content);
}

absl::StatusOr<RollupCell> DecodeRollupCell(std::string_view bytes) {
  ByteReader in("");
  auto made_of = Unseal(bytes, in);
  if (!made_of.ok()) return made_of.status();
  RollupCell cell{.made_of = *std::move(made_of)};
  const uint64_t count = in.Varint();
  for (uint64_t i = 0; i < count && !in.failed(); ++i) cell.chunks.push_back(in.Bytes(in.Varint()));
  if (in.failed() || !in.rest().empty()) return DamagedRollup();
  return cell;
}

std::string EncodeMade(const MadeRollups& made) {
  std::string content;
  AppendVarint(content, made.rollups.size());
  for (const auto& [id, kept] : made.rollups) {
    AppendVarint(content, id);
    content.push_back(kept ? 1 : 0);
  }
  return Seal(made.made_of, content);
}

absl::StatusOr<MadeRollups> DecodeMade(std::string_view bytes) {
  ByteReader in("");
  auto made_of = Unseal(bytes, in);
  if (!made_of.ok()) return made_of.status();
  MadeRollups made{.made_of = *std::move(made_of)};
  const uint64_t count = in.Varint();
  uint64_t before = 0;
  for (uint64_t i = 0; i < count && !in.failed(); ++i) {
    const uint64_t id = in.Varint();
    const uint8_t kept = in.Byte();
    // IDs begin with 1 and ascend, so that one set has one form.
    if (id <= before || id > UINT32_MAX || kept > 1) return DamagedRollup();
    made.rollups[static_cast<uint32_t>(id)] = kept == 1;
    before = id;
  }
  if (in.failed() || !in.rest().empty()) return DamagedRollup();
  return made;
}

}  // namespace kvstore::reports
