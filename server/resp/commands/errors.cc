#include "server/resp/commands/errors.h"

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "backend_api/outcome.h"
#include "server/call/call.h"

namespace kvstore::server::resp {
namespace {

constexpr char kWordPayload[] = "kvstore/resp/word";
constexpr char kTooLongPayload[] = "kvstore/resp/too-long";
/// A message may quote the name of a dataset, which may be long before it is checked.
constexpr size_t kMaxMessageBytes = 500;

std::string WordOf(const absl::Status& error) {
  if (const auto word = error.GetPayload(kWordPayload)) return std::string(*word);
  if (IsInDoubt(error)) return "INDOUBT";
  switch (error.code()) {
    case absl::StatusCode::kUnauthenticated:
      return "NOAUTH";
    case absl::StatusCode::kPermissionDenied:
      return "NOPERM";
    case absl::StatusCode::kUnavailable:
      return "TRYAGAIN";
    case absl::StatusCode::kResourceExhausted:
      return Call::OutcomeOf(error) == CallOutcome::kRefused ? "BUSY" : "ERR";
    default:
      return IsMigrating(error) ? "TRYAGAIN" : "ERR";
  }
}

}  // namespace

std::string ErrorText(const absl::Status& error) {
  // Clients look for these words; what the error says is about the header of another protocol.
  if (absl::IsUnauthenticated(error) && !error.GetPayload(kWordPayload)) {
    return "NOAUTH Authentication required.";
  }
  const std::string message(error.message().substr(0, kMaxMessageBytes));
  return fmt::format("{} {}", WordOf(error), message);
}

absl::Status WithWord(absl::Status error, const char* word) {
  error.SetPayload(kWordPayload, absl::Cord(word));
  return error;
}

absl::Status WrongTypeError(std::string_view message) {
  return WithWord(absl::FailedPreconditionError(
                      fmt::format("Operation against a key holding the wrong kind of value: {}", message)),
                  "WRONGTYPE");
}

absl::Status SyntaxError() { return absl::InvalidArgumentError("syntax error"); }

absl::Status NotAnIntegerError() {
  return absl::InvalidArgumentError("value is not an integer or out of range");
}

absl::Status TooLongHereError() {
  absl::Status error = absl::AbortedError("to be carried out by a worker");
  error.SetPayload(kTooLongPayload, absl::Cord());
  return error;
}

bool IsTooLongHere(const absl::Status& error) {
  return absl::IsAborted(error) && error.GetPayload(kTooLongPayload).has_value();
}

}  // namespace kvstore::server::resp
