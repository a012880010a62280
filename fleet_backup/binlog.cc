#include "fleet_backup/binlog.h"

#include <algorithm>
#include <array>

namespace kvstore::fleet_backup {
namespace {

// Types of events, as MariaDB numbers them.
constexpr uint8_t kStop = 3;
constexpr uint8_t kRotate = 4;
constexpr uint8_t kFormat = 15;
constexpr uint8_t kIncident = 26;
constexpr uint8_t kHeartbeat = 27;
constexpr uint8_t kCheckpoint = 161;
constexpr uint8_t kGtid = 162;
constexpr uint8_t kGtidList = 163;
constexpr uint8_t kEncryption = 164;
/// Types of events that are about the server and its files, and belong to no transaction.
constexpr std::array<uint8_t, 8> kAlone = {kStop,      kRotate,     kFormat,   kIncident,
                                           kHeartbeat, kCheckpoint, kGtidList, kEncryption};
/// The server has made the event up for the reader; it is not in the log.
constexpr uint16_t kArtificial = 0x20;

// The header of an event: time, type, server, size, position of the next one, flags.
constexpr size_t kHeaderBytes = 19;
constexpr size_t kTypeAt = 4;
constexpr size_t kServerAt = 5;
constexpr size_t kSizeAt = 9;
constexpr size_t kFlagsAt = 17;
// The header of an event that begins a transaction goes on with its sequence and its domain.
constexpr size_t kSequenceAt = kHeaderBytes;
constexpr size_t kDomainAt = kSequenceAt + 8;
constexpr size_t kGtidBytes = kDomainAt + 4;

/// Reads a number with the lowest byte first.
template <typename T>
T ReadLittleEndian(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = sizeof(T); i > 0; --i) {
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[at + i - 1]));
  }
  return value;
}

}  // namespace

std::optional<BinlogEvent> FirstEvent(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const auto size = ReadLittleEndian<uint32_t>(bytes, kSizeAt);
  if (size < kHeaderBytes || size > bytes.size()) return std::nullopt;
  return BinlogEvent{.seconds = ReadLittleEndian<uint32_t>(bytes, 0),
                     .type = ReadLittleEndian<uint8_t>(bytes, kTypeAt),
                     .flags = ReadLittleEndian<uint16_t>(bytes, kFlagsAt),
                     .bytes = bytes.substr(0, size)};
}

bool IsFormat(const BinlogEvent& event) { return event.type == kFormat; }

std::optional<shardops::Gtid> GtidOf(const BinlogEvent& event) {
  if (event.type != kGtid || event.bytes.size() < kGtidBytes) return std::nullopt;
  return shardops::Gtid{.domain = ReadLittleEndian<uint32_t>(event.bytes, kDomainAt),
                        .server = ReadLittleEndian<uint32_t>(event.bytes, kServerAt),
                        .sequence = ReadLittleEndian<uint64_t>(event.bytes, kSequenceAt)};
}

bool IsInGroup(const BinlogEvent& event) {
  const bool is_alone = std::find(kAlone.begin(), kAlone.end(), event.type) != kAlone.end();
  return !is_alone && event.type != kGtid && (event.flags & kArtificial) == 0;
}

absl::Status ReadGroups(std::string_view log,
                        const std::function<absl::Status(std::string_view bytes)>& format,
                        const std::function<absl::Status(const BinlogGroup& group)>& group) {
  bool has_format = false;
  while (!log.empty()) {
    const auto first = FirstEvent(log);
    if (!first) return absl::DataLossError("an event of the binary log is cut off");
    if (IsFormat(*first)) {
      if (auto status = format(first->bytes); !status.ok()) return status;
      has_format = true;
      log.remove_prefix(first->bytes.size());
      continue;
    }
    const auto gtid = GtidOf(*first);
    if (!gtid || !has_format) {
      return absl::DataLossError("the binary log has an event that is not part of a transaction");
    }
    size_t size = first->bytes.size();
    for (auto next = FirstEvent(log.substr(size)); next && IsInGroup(*next);
         next = FirstEvent(log.substr(size))) {
      size += next->bytes.size();
    }
    if (auto status = group({*gtid, first->seconds, log.substr(0, size)}); !status.ok()) return status;
    log.remove_prefix(size);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::fleet_backup
