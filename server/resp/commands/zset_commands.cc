#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/glob.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/mapping_reads.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/scan_options.h"
#include "server/resp/commands/words.h"

/// The list of an ID in a mapping as a sorted set: the members are IDs, the scores their sequences. Members
/// of one score are in the order of their numbers.
namespace kvstore::server::resp {
namespace {

/// So many members are dealt with on a thread on which connections are served.
constexpr size_t kMembersHere = 16;

// ---- numbers ----

absl::Status ScoreError() {
  return absl::InvalidArgumentError(
      fmt::format("a score is the sequence of an entry, a whole number from 0 to {}", kMaxTimestamp));
}

/// Some clients write whole numbers as "1.7E12", or with a sign.
std::optional<double> ParseDouble(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || std::isnan(number))
    return std::nullopt;
  return number;
}

absl::StatusOr<uint64_t> ParseScore(std::string_view text) {
  if (const auto whole = ParseUnsigned(text)) {
    if (*whole > kMaxTimestamp) return ScoreError();
    return *whole;
  }
  const auto number = ParseDouble(text);
  if (!number) {
    return absl::InvalidArgumentError(
        fmt::format("value is not a valid float; a score is a whole number from 0 to {}", kMaxTimestamp));
  }
  // 2^63 itself is a double, and too large.
  if (*number < 0 || *number >= 0x1p63 || std::floor(*number) != *number) return ScoreError();
  return static_cast<uint64_t>(*number);
}

absl::StatusOr<uint64_t> ParseMember(std::string_view text) {
  const auto id = ParseUnsigned(text);
  if (id && *id <= kMaxId) return *id;
  return absl::InvalidArgumentError(fmt::format("a member is an ID, a whole number from 0 to {}", kMaxId));
}

/// Returns the lowest sequence from which a bound is fulfilled, or with `upper` the sequence after the last
/// one: 0 to kMaxTimestamp + 1.
absl::StatusOr<uint64_t> ParseBound(std::string_view text, bool upper) {
  constexpr uint64_t kBehindAll = kMaxTimestamp + 1;
  if (Is(text, "-inf")) return uint64_t{0};
  if (Is(text, "+inf") || Is(text, "inf")) return kBehindAll;
  const bool exclusive = text.starts_with('(');
  const std::string_view digits = text.substr(exclusive ? 1 : 0);
  // Whether the number itself is on the left side of the place that is returned.
  const bool behind = upper != exclusive;
  if (const auto whole = ParseUnsigned(digits)) {
    return *whole > kMaxTimestamp ? kBehindAll : *whole + (behind ? 1 : 0);
  }
  const auto number = ParseDouble(digits);
  if (!number) return absl::InvalidArgumentError("min or max is not a float");
  if (*number < 0) return uint64_t{0};
  if (*number >= 0x1p63) return kBehindAll;
  const double floor = std::floor(*number);
  const auto whole = static_cast<uint64_t>(floor);
  return whole + (behind || floor != *number ? 1 : 0);
}

// ---- changes ----

absl::Status Add(StoreCall& call, Arguments arguments, Encoder& out) {
  for (const std::string_view flag : {"nx", "xx", "gt", "lt", "ch", "incr"}) {
    if (Is(arguments[2], flag)) {
      return absl::UnimplementedError(
          "NX, XX, GT, LT, CH and INCR are not supported: ZADD adds a member, or changes its score");
    }
  }
  const Arguments pairs = arguments.subspan(2);
  if (pairs.size() % 2 != 0) return SyntaxError();
  if (auto status = CheckCount(pairs.size() / 2, "members"); !status.ok()) return status;
  const auto mapping = FindMapping(call.router, arguments[1]);
  if (!mapping.ok()) return mapping.status();
  if (call.here && pairs.size() / 2 > kMembersHere) return TooLongHereError();
  // Nothing is added if a pair is wrong.
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (const auto score = ParseScore(pairs[i]); !score.ok()) return score.status();
    if (const auto member = ParseMember(pairs[i + 1]); !member.ok()) return member.status();
  }
  for (; call.next < pairs.size(); call.next += 2) {
    const uint64_t member = *ParseMember(pairs[call.next + 1]);
    const auto before = FindSequence(call.router, *mapping, member);
    if (!before.ok()) return before.status();
    auto added =
        call.router.AddMapping(mapping->dataset, mapping->from, member, *ParseScore(pairs[call.next]));
    if (!added.ok()) return added;
    if (!*before) ++call.count;
  }
  out.Integer(static_cast<int64_t>(call.count));
  return absl::OkStatus();
}

absl::Status Remove(StoreCall& call, Arguments arguments, Encoder& out) {
  const Arguments members = arguments.subspan(2);
  if (auto status = CheckCount(members.size(), "members"); !status.ok()) return status;
  const auto mapping = FindMapping(call.router, arguments[1]);
  if (!mapping.ok()) return mapping.status();
  if (call.here && members.size() > kMembersHere) return TooLongHereError();
  for (; call.next < members.size(); ++call.next) {
    // A text that is no ID is no member either.
    const auto member = ParseMember(members[call.next]);
    if (!member.ok()) continue;
    const auto removed = call.router.RemoveMapping(mapping->dataset, mapping->from, *member);
    if (!removed.ok()) return removed.status();
    if (*removed) ++call.count;
  }
  out.Integer(static_cast<int64_t>(call.count));
  return absl::OkStatus();
}

// ---- reads ----

absl::Status Cardinality(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto mapping = FindMapping(call.router, arguments[1]);
  if (!mapping.ok()) return mapping.status();
  const auto count = call.router.CountMapping(mapping->dataset, mapping->from);
  if (!count.ok()) return count.status();
  out.Integer(static_cast<int64_t>(*count));
  return absl::OkStatus();
}

absl::Status ScoreOf(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto mapping = FindMapping(call.router, arguments[1]);
  if (!mapping.ok()) return mapping.status();
  const auto member = ParseMember(arguments[2]);
  std::optional<uint64_t> score;
  if (member.ok()) {
    const auto found = FindSequence(call.router, *mapping, *member);
    if (!found.ok()) return found.status();
    score = *found;
  }
  if (score) {
    out.Score(*score);
  } else {
    out.Null();
  }
  return absl::OkStatus();
}

/// The arguments of a command of the family of ZRANGE.
struct RangeArguments {
  bool reverse = false;
  bool by_score = false;
  bool with_scores = false;
  bool limited = false;
  int64_t offset = 0;
  int64_t count = -1;  ///< Negative: all.
};

/// Reads the options after the bounds.
///
/// any  whether BYSCORE and REV are options of the command.
absl::Status ReadRangeOptions(Arguments options, bool any, RangeArguments& range) {
  for (size_t i = 0; i < options.size();) {
    if (Is(options[i], "withscores")) {
      range.with_scores = true;
      ++i;
    } else if (Is(options[i], "rev") && any) {
      range.reverse = true;
      ++i;
    } else if (Is(options[i], "byscore") && any) {
      range.by_score = true;
      ++i;
    } else if (Is(options[i], "bylex") && any) {
      return absl::UnimplementedError("BYLEX is not supported: members are numbers");
    } else if (Is(options[i], "limit") && i + 2 < options.size()) {
      const auto offset = ParseSigned(options[i + 1]);
      const auto count = ParseSigned(options[i + 2]);
      if (!offset || !count) return NotAnIntegerError();
      range.limited = true;
      range.offset = *offset;
      range.count = *count;
      i += 3;
    } else {
      return SyntaxError();
    }
  }
  if (range.limited && !range.by_score) {
    return absl::InvalidArgumentError("syntax error, LIMIT is only supported in combination with BYSCORE");
  }
  return absl::OkStatus();
}

/// Lists by places, which count from the end if they are negative.
absl::StatusOr<std::vector<MappingEntry>> ListByPlace(StoreCall& call, const MappingOf& mapping,
                                                      Arguments bounds, const RangeArguments& range) {
  auto start = ParseSigned(bounds[0]);
  auto stop = ParseSigned(bounds[1]);
  if (!start || !stop) return NotAnIntegerError();
  EntriesWanted wanted{.descending = range.reverse};
  const bool to_end = *stop == -1;
  if (*start < 0 || (*stop < 0 && !to_end)) {
    const auto count = call.router.CountMapping(mapping.dataset, mapping.from);
    if (!count.ok()) return count.status();
    const auto size = static_cast<int64_t>(*count);
    if (*start < 0) start = std::max<int64_t>(0, size + std::max(*start, -size));
    if (*stop < 0) stop = *stop < -size ? -1 : size + *stop;
    if (*start > *stop) return std::vector<MappingEntry>();
    wanted.count = static_cast<uint64_t>(*stop - *start) + 1;
  } else if (!to_end) {
    if (*start > *stop) return std::vector<MappingEntry>();
    wanted.count = static_cast<uint64_t>(*stop - *start) + 1;
  }
  wanted.offset = static_cast<uint64_t>(*start);
  return ListEntries(call.router, mapping, wanted, call.here);
}

absl::StatusOr<std::vector<MappingEntry>> ListByScore(StoreCall& call, const MappingOf& mapping,
                                                      Arguments bounds, const RangeArguments& range) {
  const auto min = ParseBound(bounds[range.reverse ? 1 : 0], /*upper=*/false);
  const auto behind = ParseBound(bounds[range.reverse ? 0 : 1], /*upper=*/true);
  if (!min.ok()) return min.status();
  if (!behind.ok()) return behind.status();
  if (*min >= *behind || range.offset < 0 || range.count == 0) return std::vector<MappingEntry>();
  EntriesWanted wanted{.descending = range.reverse,
                       .min = *min,
                       .max = *behind - 1,
                       .offset = static_cast<uint64_t>(range.offset)};
  if (range.count > 0) wanted.count = static_cast<uint64_t>(range.count);
  return ListEntries(call.router, mapping, wanted, call.here);
}

void AppendEntries(const std::vector<MappingEntry>& entries, bool with_scores, Encoder& out) {
  const bool in_pairs = with_scores && out.version() == Version::kResp3;
  out.Array(with_scores && !in_pairs ? 2 * entries.size() : entries.size());
  for (const MappingEntry& entry : entries) {
    if (in_pairs) out.Array(2);
    out.Bulk(std::to_string(entry.to));
    if (with_scores) out.Score(entry.sequence);
  }
}

absl::Status List(StoreCall& call, Arguments arguments, bool any, RangeArguments range, Encoder& out) {
  if (auto status = ReadRangeOptions(arguments.subspan(4), any, range); !status.ok()) return status;
  const auto mapping = FindMapping(call.router, arguments[1]);
  if (!mapping.ok()) return mapping.status();
  const Arguments bounds = arguments.subspan(2, 2);
  const auto entries = range.by_score ? ListByScore(call, *mapping, bounds, range)
                                      : ListByPlace(call, *mapping, bounds, range);
  if (!entries.ok()) return entries.status();
  AppendEntries(*entries, range.with_scores, out);
  return absl::OkStatus();
}

absl::Status Range(StoreCall& call, Arguments arguments, Encoder& out) {
  return List(call, arguments, /*any=*/true, {}, out);
}
absl::Status ReverseRange(StoreCall& call, Arguments arguments, Encoder& out) {
  return List(call, arguments, /*any=*/false, {.reverse = true}, out);
}
absl::Status RangeByScore(StoreCall& call, Arguments arguments, Encoder& out) {
  return List(call, arguments, /*any=*/false, {.by_score = true}, out);
}
absl::Status ReverseRangeByScore(StoreCall& call, Arguments arguments, Encoder& out) {
  return List(call, arguments, /*any=*/false, {.reverse = true, .by_score = true}, out);
}

absl::Status SetScan(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto scan = ReadScanOptions(arguments.subspan(2), {});
  if (!scan.ok()) return scan.status();
  const auto mapping = FindMapping(call.router, arguments[1]);
  if (!mapping.ok()) return mapping.status();
  const std::string what = fmt::format("zscan {}", IdKeyText(mapping->dataset, mapping->from));
  MappingScanOptions options{.limit = scan->count};
  if (scan->cursor != 0) {
    auto position = call.cursors.Find(call.caller, scan->cursor, what);
    if (!position) return UnknownCursorError();
    options.marker = *std::move(position);
  }
  auto page =
      call.router.ScanMappings(mapping->dataset, {.start = mapping->from, .end = mapping->from + 1}, options);
  if (!page.ok()) return page.status();
  const uint64_t next =
      page->marker.empty() ? 0 : call.cursors.Add(call.caller, what, std::move(page->marker));
  std::vector<std::pair<std::string, std::string>> found;
  for (const ScannedMapping& entry : page->entries) {
    if (auto status = CheckCall(); !status.ok()) return status;
    std::string member = std::to_string(entry.to);
    if (Matches(scan->pattern, member)) found.emplace_back(std::move(member), std::to_string(entry.sequence));
  }
  out.Array(2);
  out.Bulk(std::to_string(next));
  out.Array(2 * found.size());
  for (const auto& [member, score] : found) {
    out.Bulk(member);
    out.Bulk(score);
  }
  return absl::OkStatus();
}

/// Returns the line of a command on one list.
constexpr Command OnList(std::string_view name, int arity,
                         absl::Status (*carry_out)(StoreCall&, Arguments, Encoder&), Operation operation,
                         std::string_view words, std::string_view summary) {
  return OnKey(name, arity, StoreCommand{.carry_out = carry_out, .brief = true}, operation, Shape::kMappings,
               "sorted-set", words, summary);
}

}  // namespace

std::span<const Command> SortedSetCommands() {
  static constexpr std::array kCommands = {
      OnList("zadd", -4, &Add, Operation::kAddMapping, "dataset:id score member [score member ...]",
             "Adds entries, or changes their sequences; returns how many are new"),
      OnList("zcard", 2, &Cardinality, Operation::kCountMapping, "dataset:id",
             "Returns how many entries an ID has"),
      OnList("zrange", -4, &Range, Operation::kListMapping,
             "dataset:id start stop [BYSCORE] [REV] [LIMIT offset count] [WITHSCORES]",
             "Returns entries by their places or by their sequences"),
      OnList("zrangebyscore", -4, &RangeByScore, Operation::kListMapping,
             "dataset:id min max [WITHSCORES] [LIMIT offset count]",
             "Returns the entries with sequences in a range"),
      OnList("zrem", -3, &Remove, Operation::kRemoveMapping, "dataset:id member [member ...]",
             "Removes entries; returns how many there were"),
      OnList("zrevrange", -4, &ReverseRange, Operation::kListMapping, "dataset:id start stop [WITHSCORES]",
             "Returns entries by their places, from the end"),
      OnList("zrevrangebyscore", -4, &ReverseRangeByScore, Operation::kListMapping,
             "dataset:id max min [WITHSCORES] [LIMIT offset count]",
             "Returns the entries with sequences in a range, from the end"),
      OnList("zscan", -3, &SetScan, Operation::kScanMappings,
             "dataset:id cursor [MATCH pattern] [COUNT count]", "Returns the entries of an ID in parts"),
      OnList("zscore", 3, &ScoreOf, Operation::kScanMappings, "dataset:id member",
             "Returns the sequence of an entry"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
