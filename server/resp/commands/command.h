#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"
#include "router/router.h"
#include "server/call/access.h"
#include "server/call/operation.h"
#include "server/resp/commands/cursors.h"
#include "server/resp/commands/session.h"
#include "server/resp/protocol/encoder.h"

/// The commands: what each one is called, takes, needs and does. The tables of the groups (groups.h) have
/// them; whoever serves a connection (server/resp/connection.h) carries them out.
namespace kvstore::server::resp {

/// The words of a command; the first one is its name. They live until the command is answered.
using Arguments = std::span<const std::string_view>;

/// The most that a command reads for one answer. A larger answer is an error and not cut.
inline constexpr size_t kMaxAnswerBytes = size_t{16} << 20;
inline constexpr size_t kMaxAnswerElements = 100'000;
/// The most bytes of an answer as it is sent, with the lengths and the ends of its elements. Whatever a
/// command makes of what it has read, even of one value many times, a larger answer is an error.
inline constexpr size_t kMaxSentBytes = kMaxAnswerBytes + 64 * kMaxAnswerElements;

class AnswerMemory;

// ---- what carries a command out ----

/// A command about the connection, which is answered at once and without the store.
struct Local {
  void (*answer)(Session& session, Arguments arguments, Encoder& out) = nullptr;
  bool for_strangers = false;  ///< Callers who are not known yet may use it.
};

/// A read of one row.
struct ReadPlan {
  std::string_view dataset;
  std::string row;
  ReadOptions options;
};
/// A command that is a read of one row. Reads of one connection that follow one another may be made together.
struct ReadCommand {
  absl::Status (*plan)(Arguments arguments, ReadPlan& plan) = nullptr;
  /// row  has all that the plan asks for.
  void (*answer)(Arguments arguments, const Row& row, Encoder& out) = nullptr;
};

/// A put of one row. It stays where it was made, because of its views.
struct WritePlan {
  std::string_view dataset;
  std::string row;
  std::string column;            ///< The column of a command whose key names it.
  std::vector<CellWrite> cells;  ///< Their views point into the arguments, or to `column`.
  WriteOptions options;
  /// The answer says how many of the columns had no value before: they are read before the put, and `added`
  /// is set.
  bool counts_added = false;
  uint64_t added = 0;
};
/// A command that is a put of one row. Puts of many connections may be made together.
struct WriteCommand {
  absl::Status (*plan)(Arguments arguments, WritePlan& plan) = nullptr;
  /// put  what the store has answered; null if the put's condition did not hold.
  void (*answer)(const WritePlan& plan, const PutResult* put, Encoder& out) = nullptr;
};

/// The context and the progress of a StoreCommand. A command whose dataset migrates is refused, and carried
/// out again later: `next`, `done` and `count` say how far it has come.
struct StoreCall {
  Router& router;
  Cursors& cursors;
  const Principal* principal = nullptr;  ///< Null: everybody may do everything.
  std::string_view caller;               ///< The caller's name; empty: it has none.
  /// Whether this is a thread on which connections are served. A command that finds that it would take long,
  /// or wait, returns TooLongHereError there.
  bool here = false;
  AnswerMemory* memory = nullptr;  ///< The memory of the answer; never null while the command is carried out.
  size_t next = 0;                 ///< Keys or members before this one were dealt with.
  std::vector<bool> done;          ///< Those that were dealt with, for commands with another order.
  uint64_t count = 0;              ///< The count so far.
  /// The datasets of its keys whose limits have counted it, each once.
  std::set<std::string_view> counted;
};
struct StoreCommand {
  absl::Status (*carry_out)(StoreCall& call, Arguments arguments, Encoder& out) = nullptr;
  /// Whether it is always short, so that it is begun on the thread that serves the connection where its
  /// dataset does not wait.
  bool brief = false;
};

// ---- the table ----

/// Where a command names its dataset.
enum class DatasetIn : uint8_t {
  kNone,      ///< It is about no dataset, or it looks at each caller's rights itself.
  kKey,       ///< In its first key.
  kArgument,  ///< In its first argument.
  kScan,      ///< SCAN: in its cursor or its pattern.
};

/// The places of keys among the words, as COMMAND shows them: `last` may count from the end, -1 being the
/// last word.
struct KeyPlaces {
  int first = 0;
  int last = 0;
  int step = 0;
};

using Handler = std::variant<Local, ReadCommand, WriteCommand, StoreCommand>;

struct Command {
  std::string_view name;  ///< In lower case.
  /// How many words it has, its name among them; negative: at least so many.
  int arity = 0;
  Handler handler;
  /// The operation as which it is counted, and which says what right it needs; kCalls for commands about the
  /// connection.
  Operation operation = Operation::kCalls;
  DatasetIn dataset = DatasetIn::kNone;
  /// The shape that its datasets must have; nothing: any.
  std::optional<Shape> shape;
  KeyPlaces keys;
  std::string_view group;
  std::string_view words;    ///< The words after its name, for people.
  std::string_view summary;  ///< The effect, in a few words.
};

/// Returns the line of a command whose first argument is its only key.
constexpr Command OnKey(std::string_view name, int arity, Handler handler, Operation operation,
                        std::optional<Shape> shape, std::string_view group, std::string_view words,
                        std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .handler = handler,
          .operation = operation,
          .dataset = DatasetIn::kKey,
          .shape = shape,
          .keys = {1, 1, 1},
          .group = group,
          .words = words,
          .summary = summary};
}

/// Whether it has as many words as it needs.
inline bool HasArity(const Command& command, size_t words) {
  const auto wanted = static_cast<size_t>(command.arity < 0 ? -command.arity : command.arity);
  return command.arity < 0 ? words >= wanted : words == wanted;
}

}  // namespace kvstore::server::resp
