#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "json/json.h"
#include "server/call/attempt.h"
#include "server/call/call.h"
#include "server/http/caller_store.h"
#include "server/http/held_memory.h"
#include "server/http/json_operations.h"

namespace kvstore::server {

/// One operation that was asked for as JSON, from its caller's identification to the text of its answer.
///
/// The order is: Identify, then Admit, then Execute where Run or SuspendUntilRetry has it done; or Refuse
/// instead, if one of the first two fails. Externally synchronised, but for what Call says.
class JsonCall : public Call {
 public:
  /// Identifies a write that the client may repeat; both are empty if the client says nothing about that.
  struct Repetition {
    std::string request_id;
    std::string first_instance;
  };

  JsonCall(Core& core, const JsonOperation& operation, const CallInfo& info, Repetition repetition = {});

  /// Finds out who calls, before the request is read. An error ends the call.
  absl::Status Identify();
  const JsonOperation& served() const { return served_; }
  /// Sets the request. One that came with others over a stream has "op", and perhaps "id", which the answer
  /// repeats.
  void SetRequest(Json request) { request_ = std::move(request); }
  /// Checks the caller's right, and counts the call in. An error ends the call.
  ///
  /// size  Of the request as it came, and what it takes in memory.
  absl::Status Admit(RequestSize size);
  /// Carries the operation out, and counts and logs its end. Returns false if its dataset migrates, and the
  /// call is to be suspended and retried (Call::SuspendUntilRetry).
  bool Execute();
  /// Ends the call, which was not carried out, with an error.
  void Refuse(const absl::Status& error);

  /// After Execute or Refuse: what the call ended with, and the text of its answer, one line with its end.
  const absl::Status& status() const { return status_; }
  const std::string& text() const { return text_; }
  /// Moves the text out. It stays counted until the call is destroyed.
  std::string TakeText() { return std::move(text_); }

 private:
  /// Returns whether the call has no limit of time but its client's.
  bool IsLong() const;
  /// Returns whether an earlier attempt was carried out, or may have been: then `status` is what the call
  /// ends with.
  bool IsKnown(absl::Status& status, Json& answer);
  /// Carries it out; within a CallScope.
  absl::StatusOr<Json> CarryOut();
  /// Makes the answer of an earlier attempt whole, of which the object was left out.
  absl::StatusOr<Json> MakeWhole(std::string_view kept);
  /// Keeps the end of the call for retries.
  void Remember(const absl::Status& status, const Json& answer);
  void SetText(absl::StatusOr<Json> answer);
  /// Told how far long work is; returns false if it must stop.
  bool MayGoOn();

  const JsonOperation& served_;
  const Repetition repetition_;
  HeldMemory memory_{*this};
  CallerStore store_;
  Attempt attempt_;
  std::shared_ptr<void> kept_;  // of AdmitShardOperation
  Json request_;
  absl::Status status_;
  std::string text_;
};

}  // namespace kvstore::server
