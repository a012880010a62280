#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "shardops/gtid.h"

/// The binary log of MariaDB servers, as far as its backup must understand it: events, and the groups of
/// events that are a transaction each. Servers execute them again; here they are only told apart.
namespace kvstore::fleet_backup {

/// The bytes with which a file of a binary log begins.
inline constexpr std::string_view kBinlogMagic =
    "\xFE"
    "bin";

/// An event, which points into the log's bytes.
struct BinlogEvent {
  uint32_t seconds = 0;  ///< When its statement began, since 1970, by the clock of the master.
  uint8_t type = 0;
  uint16_t flags = 0;
  std::string_view bytes;  ///< All of it, with its header.
};

/// Returns the event at the beginning of some bytes; nullopt if they do not begin with a whole one.
std::optional<BinlogEvent> FirstEvent(std::string_view bytes);

/// Whether the event says how those after it are to be read.
bool IsFormat(const BinlogEvent& event);
/// The transaction that begins with this event; nullopt if none does.
std::optional<shardops::Gtid> GtidOf(const BinlogEvent& event);
/// Whether the event is a part of the transaction before it. The others are about the server's files.
bool IsInGroup(const BinlogEvent& event);

/// A transaction.
struct BinlogGroup {
  shardops::Gtid gtid;
  uint32_t seconds = 0;    ///< When its commit began; of a transaction of one statement, when that began.
  std::string_view bytes;  ///< Its events.
};

/// Reads a part of a log: events of format, each of which holds for the groups after it, and groups. Calls
/// `format` and `group` for them in order; the first error of one of them is returned. DATA_LOSS if it is
/// anything else.
absl::Status ReadGroups(std::string_view log,
                        const std::function<absl::Status(std::string_view bytes)>& format,
                        const std::function<absl::Status(const BinlogGroup& group)>& group);

}  // namespace kvstore::fleet_backup
