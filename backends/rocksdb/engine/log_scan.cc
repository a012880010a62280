#include "backends/rocksdb/engine/log_scan.h"

#include <algorithm>
#include <boost/crc.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace kvstore::rocks {
namespace {

constexpr uint64_t kBlock = 32768;
constexpr uint64_t kHeader = 4 + 2 + 1;
enum Type : uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

uint32_t MaskedChecksum(std::string_view bytes) {
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t sum = crc.checksum();
  return (sum >> 15 | sum << 17) + 0xa282ead8U;
}

struct Fragment {
  uint8_t type = 0;
  std::string_view bytes;
};

class Scanner {
 public:
  explicit Scanner(std::string_view log) : log_(log) {}

  LogScan Run() {
    LogScan scan{.size = log_.size()};
    while (const auto changes = NextRecord()) {
      scan.good = at_;
      scan.changes += *changes;
    }
    scan.damaged = !torn_ && log_.find_first_not_of('\0', at_) != std::string_view::npos;
    while (scan.damaged && at_ < log_.size()) {
      // The damaged bytes may be the size of a fragment, so the scan goes on where a fragment is known to
      // begin: at the next block.
      at_ = (at_ / kBlock + 1) * kBlock;
      skips_ends_ = true;
      while (const auto changes = NextRecord()) scan.changes_behind += *changes;
    }
    return scan;
  }

 private:
  /// Returns the next fragment; nullopt at the end, and at bytes that are not a fragment, where at_ stays.
  std::optional<Fragment> NextFragment() {
    if (kBlock - at_ % kBlock < kHeader) at_ = (at_ / kBlock + 1) * kBlock;
    if (at_ >= log_.size()) return std::nullopt;
    const std::string_view rest = log_.substr(at_);
    const uint64_t size = rest.size() < kHeader ? 0 : LittleEndian(rest.substr(4, 2));
    const bool crosses = at_ % kBlock + kHeader + size > kBlock;
    // No fragment crosses the end of its block: in a block that is there as a whole the size is damaged.
    if (crosses && (at_ / kBlock + 1) * kBlock <= log_.size()) return std::nullopt;
    if (kHeader + size > rest.size()) {
      torn_ = true;
      return std::nullopt;
    }
    const std::string_view checked = rest.substr(kHeader - 1, 1 + size);
    if (crosses) return std::nullopt;
    if (LittleEndian(rest.substr(0, 4)) != MaskedChecksum(checked)) return std::nullopt;
    at_ += kHeader + size;
    return Fragment{static_cast<uint8_t>(checked[0]), checked.substr(1)};
  }

  /// Returns the number of changes in the next whole record; nullopt at the end, and where there is no
  /// record.
  std::optional<uint64_t> NextRecord() {
    torn_ = false;
    std::string head;
    bool inside = false;
    while (const auto fragment = NextFragment()) {
      const bool begins = fragment->type == kFull || fragment->type == kFirst;
      if (skips_ends_ && !inside && !begins) continue;
      if (begins == inside || fragment->type < kFull || fragment->type > kLast) return std::nullopt;
      if (head.size() < kBatchHeader) head += fragment->bytes.substr(0, kBatchHeader);
      if (fragment->type == kFull || fragment->type == kLast) {
        return head.size() < kBatchHeader ? 0 : LittleEndian(std::string_view(head).substr(8, 4));
      }
      inside = true;
    }
    // The end of the log cuts the record between two of its fragments.
    if (inside && at_ >= log_.size()) torn_ = true;
    return std::nullopt;
  }

  static constexpr size_t kBatchHeader = 8 + 4;

  const std::string_view log_;
  uint64_t at_ = 0;
  bool skips_ends_ = false;  // skip the rest of records whose beginning is damaged
  bool torn_ = false;        // the end of the log cuts the last record off
};

}  // namespace

absl::StatusOr<LogScan> ScanLog(const std::filesystem::path& log) {
  const auto bytes = ReadFile(log);
  if (!bytes.ok()) return bytes.status();
  return Scanner(*bytes).Run();
}

}  // namespace kvstore::rocks
