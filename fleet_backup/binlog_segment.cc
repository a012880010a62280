#include "fleet_backup/binlog_segment.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "backup/checked_line.h"
#include "backup/log_segment.h"
#include "backup/zstd_level.h"
#include "blobstore/sha256.h"
#include "fleet_backup/binlog.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::fleet_backup {
namespace {

constexpr uint64_t kSegmentFormat = 1;
constexpr uint64_t kMaxTime = uint64_t{1} << 62;

absl::Status DamagedSegment(std::string_view blob, std::string_view problem) {
  return absl::DataLossError(fmt::format("{}: {}", blob, problem));
}

std::string PackLog(const std::string& log) {
  std::string packed(ZSTD_compressBound(log.size()), '\0');
  // It fails only if there is too little room.
  packed.resize(ZSTD_compress(packed.data(), packed.size(), log.data(), log.size(), backup::kZstdLevel));
  return packed;
}

/// Checks that the log has the transactions that the first line says.
absl::Status CheckLog(const BinlogSegment& segment, std::string_view blob) {
  shardops::GtidPosition position(segment.after);
  uint64_t transactions = 0;
  const absl::Status read = ReadGroups(
      segment.log, [](std::string_view) { return absl::OkStatus(); },
      [&](const BinlogGroup& group) -> absl::Status {
        if (position.Has(group.gtid)) return absl::DataLossError("its transactions are not in order");
        position.Add(group.gtid);
        ++transactions;
        return absl::OkStatus();
      });
  if (!read.ok()) return DamagedSegment(blob, std::string(read.message()));
  if (transactions != segment.transactions) return DamagedSegment(blob, "it lacks transactions");
  if (position.ToString() != shardops::GtidPosition(segment.last).ToString()) {
    return DamagedSegment(blob, "it does not end where it says");
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeBinlogSegment(const BinlogSegment& segment) {
  Json json = {{"format", kSegmentFormat},
               {"chain", segment.chain},
               {"number", segment.number},
               {"previous", segment.previous},
               {"after", segment.after},
               {"last", segment.last},
               {"first_ms", segment.first_ms},
               {"last_ms", segment.last_ms},
               {"transactions", segment.transactions},
               {"zookeeper_in", segment.nodes_in},
               {"bytes", segment.log.size()},
               {"sha256", Hex(Sha256Of(segment.log))}};
  if (!segment.nodes.empty()) json["zookeeper"] = segment.nodes;
  if (segment.nodes_ms > 0) json["zookeeper_ms"] = segment.nodes_ms;
  return backup::WithChecksumLine(TextOf(json)) + PackLog(segment.log);
}

absl::StatusOr<BinlogSegment> DecodeBinlogSegment(std::string_view bytes, std::string_view blob) {
  const size_t first_end = bytes.find('\n');
  const size_t end = first_end == std::string_view::npos ? first_end : bytes.find('\n', first_end + 1);
  if (end == std::string_view::npos) return DamagedSegment(blob, "it is cut off");
  const auto line = backup::CheckedLine(bytes.substr(0, end + 1));
  if (!line.ok()) return DamagedSegment(blob, std::string(line.status().message()));
  const auto json = ParseJson(*line);
  if (!json.ok()) return DamagedSegment(blob, std::string(json.status().message()));
  JsonFields fields(*json, "");
  if (fields.Uint("format", 1, kMaxTime) > kSegmentFormat) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a newer version of KVStore wrote it; use that version", blob));
  }
  BinlogSegment segment{.chain = fields.String("chain"),
                        .number = fields.Uint("number", 1, UINT64_MAX),
                        .previous = fields.String("previous"),
                        .after = fields.String("after"),
                        .last = fields.String("last"),
                        .first_ms = fields.Uint("first_ms", 0, kMaxTime),
                        .last_ms = fields.Uint("last_ms", 0, kMaxTime),
                        .transactions = fields.Uint("transactions", 0, UINT64_MAX),
                        .nodes = fields.OptionalString("zookeeper").value_or(""),
                        .nodes_ms = fields.OptionalUint("zookeeper_ms", 0, kMaxTime).value_or(0),
                        .nodes_in = fields.Uint("zookeeper_in", 0, UINT64_MAX),
                        .log = ""};
  const uint64_t size = fields.Uint("bytes", 0, kMaxLogBytes);
  const std::string sha256 = fields.String("sha256");
  // A later version may add fields that this one need not know.
  if (json->is_object()) {
    for (const auto& field : json->items()) fields.Find(field.key());
  }
  if (auto status = fields.Finish(); !status.ok()) return DamagedSegment(blob, std::string(status.message()));
  const auto [chain, number] = backup::PartsOfSegment(blob);
  if (segment.chain != chain || segment.number != number) {
    return DamagedSegment(blob, "it is another segment than its name says");
  }
  if (segment.nodes_in > segment.number || segment.nodes.empty() == (segment.nodes_in == segment.number)) {
    return DamagedSegment(blob, "zookeeper_in: is not the number of a segment that has it");
  }
  const std::string_view packed = bytes.substr(end + 1);
  // Checked before memory is taken for it.
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size) {
    return DamagedSegment(blob, "its log has another size than it says");
  }
  segment.log.resize(size);
  const size_t unpacked = ZSTD_decompress(segment.log.data(), size, packed.data(), packed.size());
  if (unpacked != size || Hex(Sha256Of(segment.log)) != sha256) {
    return DamagedSegment(blob, "its log is not what was sent");
  }
  if (auto status = CheckLog(segment, blob); !status.ok()) return status;
  return segment;
}

absl::StatusOr<FetchedSegment> FetchBinlogSegment(BlobStore& blobs, const std::string& blob) {
  const auto info = blobs.Stat(blob);
  if (absl::IsNotFound(info.status())) return DamagedSegment(blob, "a segment of the log is missing");
  if (!info.ok()) return info.status();
  std::string bytes(info->size, '\0');
  const auto copy = [&](uint64_t offset, std::string_view piece) -> absl::Status {
    if (offset + piece.size() > bytes.size()) return DamagedSegment(blob, "it is longer than it was");
    piece.copy(bytes.data() + offset, piece.size());
    return absl::OkStatus();
  };
  absl::Status read = blobs.Read(blob, {.size = info->size, .checksum = info->checksum}, copy);
  if (absl::IsNotFound(read)) return DamagedSegment(blob, "a segment of the log is missing");
  if (!read.ok()) return read;
  auto segment = DecodeBinlogSegment(bytes, blob);
  if (!segment.ok()) return segment.status();
  return FetchedSegment{*std::move(segment), Hex(Sha256Of(bytes))};
}

}  // namespace kvstore::fleet_backup
