#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "backup/checked_line.h"
#include "backup/log_segment.h"
#include "backup/units_file.h"
#include "fleet_backup/binlog.h"
#include "fleet_backup/binlog_segment.h"

using namespace kvstore;

namespace {

/// Any bytes as a file of units are refused, or have units in order.
void ReadAsUnits(std::string_view bytes) {
  std::string last;
  backup::ReadUnits(bytes, [&](std::vector<Unit> units) {
    for (const Unit& unit : units) {
      if (unit.key <= last) std::abort();
      last = unit.key;
    }
    return absl::OkStatus();
  }).IgnoreError();
}

/// Any bytes as a segment of a log, with the checksum that its first line must have, are refused, or read
/// back the same after they are written, and no path leaves the folder.
void ReadAsSegment(std::string_view bytes) {
  constexpr std::string_view kBlob = "log/20261124T031459Z-1a2b3c4d/00000002";
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return;
  const std::string text =
      backup::WithChecksumLine(std::string(bytes.substr(0, end))) + std::string(bytes.substr(end + 1));
  const auto segment = backup::DecodeSegment(text, kBlob);
  if (!segment.ok()) return;
  for (const auto& [path, contents] : segment->schema.files) {
    if (path.empty() || path.front() == '/' || path.front() == '.') std::abort();
    if (path.find("/.") != std::string::npos) std::abort();
  }
  const auto again = backup::DecodeSegment(backup::EncodeSegment(*segment), kBlob);
  if (!again.ok() || again->writes != segment->writes || again->schema != segment->schema) std::abort();
}

/// Any bytes as a binary log are refused, or are events and transactions without anything between them.
void ReadAsBinlog(std::string_view bytes) {
  size_t read = 0;
  const absl::Status status = fleet_backup::ReadGroups(
      bytes,
      [&](std::string_view format) {
        read += format.size();
        return absl::OkStatus();
      },
      [&](const fleet_backup::BinlogGroup& group) {
        read += group.bytes.size();
        return absl::OkStatus();
      });
  if (status.ok() ? read != bytes.size() : read >= bytes.size()) std::abort();
}

/// Any bytes as a segment of a binary log, with the checksum that its first line must have, are refused, or
/// read back the same after they are written.
void ReadAsBinlogSegment(std::string_view bytes) {
  constexpr std::string_view kBlob = "log/20261124T031459Z-1a2b3c4d/00000002";
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return;
  const std::string text =
      backup::WithChecksumLine(std::string(bytes.substr(0, end))) + std::string(bytes.substr(end + 1));
  const auto segment = fleet_backup::DecodeBinlogSegment(text, kBlob);
  if (!segment.ok()) return;
  const auto again = fleet_backup::DecodeBinlogSegment(fleet_backup::EncodeBinlogSegment(*segment), kBlob);
  if (!again.ok() || *again != *segment) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadAsUnits(bytes);
  ReadAsSegment(bytes);
  ReadAsBinlog(bytes);
  ReadAsBinlogSegment(bytes);
  return 0;
}
