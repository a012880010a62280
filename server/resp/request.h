#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/resp/commands/command.h"
#include "server/resp/commands/cursors.h"
#include "server/resp/protocol/encoder.h"

namespace kvstore::server::resp {

/// The call that a command is: admitted, counted and logged as every other one. A connection has one, too, by
/// which its caller is known.
class CommandCall : public Call {
 public:
  CommandCall(Core& core, Operation operation, const CallInfo& info) : Call(core, operation, info) {}

  absl::Status Admit(std::string_view dataset, RequestSize size, bool sync) {
    return Call::Admit(dataset, size, sync);
  }
  /// Returns the limits within which it is carried out.
  const CallLimits& Limits() { return Call::Limits(/*stream=*/false); }
  /// Returns whether it may be carried out now, in a scope of its limits. May set another principal.
  absl::Status CheckStart() { return Call::CheckStart(); }
  /// Returns whether it is to be suspended after `status`, because its dataset migrates. If not, `status` is
  /// what it ends with.
  bool MustSuspend(absl::Status& status) {
    if (!CanRetryAfter(status)) return false;
    if (ShouldSuspend(status)) return true;
    status = ErrorWithoutSuspension(status);
    return false;
  }
  /// Counts and logs the end. The answer counts as in memory until this is destroyed, or the connection
  /// counts what it sends.
  void Finish(const absl::Status& status, size_t answer_bytes) {
    CountResponse(answer_bytes);
    End(status);
  }

  /// Returns the caller; null: everybody may do everything.
  const Principal* principal() const { return principal_.get(); }
  /// Returns the caller's name. The caller must be known.
  const std::string& caller() const { return CallerName(); }
};

/// A command that works with the store, from when it was decoded until it is answered. Stays where it was
/// made.
struct Request {
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const Command* command = nullptr;         ///< Null: there is none of that name.
  std::vector<std::string_view> arguments;  ///< They point into the decoder's memory.
  std::unique_ptr<CommandCall> call;        ///< Null: it was refused before, or is about the connection.
  std::variant<std::monostate, ReadPlan, WritePlan, StoreCall> plan;
  /// Why it is not carried out; when it is done, what it has ended with.
  absl::Status status;
  bool done = false;
  std::optional<PutResult> put;  ///< The result of a put that is done.
  std::string answer;            ///< The answer that a worker has made.
  bool begun = false;            ///< Examined, and admitted or refused.
  bool tracked = false;          ///< Among Core::open.
};
using Requests = std::vector<std::unique_ptr<Request>>;

/// Makes the call of a command, plans it and has it admitted. Sets Request::status if it must not be carried
/// out.
///
/// session  the connection's call.
void Begin(Core& core, Cursors& cursors, CommandCall& session, const CallInfo& info, Request& request);

/// Whether a command that has not begun would probably not be turned away.
///
/// session  the connection's call, whose caller is known.
bool HasRoomFor(const CommandCall& session, const Request& request);
/// Whether a command that was begun was turned away because too much is in flight.
bool IsTurnedAway(const Request& request);
/// Makes a command that was turned away as if it was not begun.
void TakeBack(Request& request);

/// Returns the dataset of a planned read or put.
std::string_view PlannedDataset(const Request& request);

enum class Outcome : uint8_t {
  kDone,
  kSuspended,  ///< Its dataset migrates: it is to be tried again later.
  kTooLong,    ///< It is to be carried out by a worker.
  kPartly,     ///< Not all of several commands were carried out, because the answers are large.
};

/// Carries out a read or a command on the store, and appends its answer.
///
/// here  as in StoreCall.
Outcome CarryOut(Core& core, Request& request, bool here, Encoder& out);

/// Carries out reads of one dataset together, in their order; those that are done stay as they are. The
/// answers are in Request::answer. kPartly when the answers have so many bytes.
Outcome CarryOutReads(Core& core, const Requests& requests, size_t most_bytes, Version version);

/// Ends a command that must not be carried out: appends its error.
void Refuse(Request& request, Encoder& out);

}  // namespace kvstore::server::resp
