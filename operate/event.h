#pragma once

#include <cstdint>
#include <string>

#include "json/json.h"

namespace kvstore::operate {

/// Something that `kv operate` did, decided not to do, or wants a person to know.
struct Event {
  /// "alarm" or "over" (of an alarm); "act": it has begun or done something; "would": a dry run would have;
  /// "refuse": it does not act, though somebody may expect it to; "fail": something that it did has failed;
  /// "lead": it leads from now on.
  std::string kind;
  std::string subject;  ///< A host, a pair, a dataset, "zookeeper".
  std::string text;     ///< A sentence.
  std::string page;     ///< For an alarm, the page and heading that say what to do: "runbook.md#..."
  uint64_t at_ms = 0;   ///< By this machine's clock; assigned by Journal::Add.
  std::string by;       ///< The process; assigned by Journal::Add.
};

/// {"kind", "subject", "text", "at_ms", "by"}, and "page" if it has one.
Json ToJson(const Event& event);
/// Reads that back; fields that are missing stay empty.
Event EventFromJson(const Json& json);

}  // namespace kvstore::operate
