#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "json/json.h"
#include "server/call/call.h"

namespace kvstore::server {

/// A call that follows a dataset, as server-sent events: each has the JSON of a change as its data, and the
/// token to go on after it as its id. (https://html.spec.whatwg.org/multipage/server-sent-events.html)
///
/// The order is: Begin, then Produce again and again, where Run, Post or one of Suspend... has it done.
/// Externally synchronised, but for what Call says.
class ChangeEvents : public Call {
 public:
  enum class Made {
    kEvents,      ///< TakeText has some.
    kNothingYet,  ///< SuspendUntilNews has Produce called again.
    kNoRoom,      ///< SuspendUntilRoom has Produce called again.
    kEnd,         ///< status() is why. TakeText may have an event that says it.
  };

  ChangeEvents(Core& core, const CallInfo& info, std::string dataset, std::string from)
      : Call(core, Operation::kWatchChanges, info),
        wanted_(std::move(dataset)),
        follower_(core.changes, wanted_, std::move(from)) {
    Track();
  }

  /// Finds out who calls, checks the right, and counts the call in. An error ends the call.
  ///
  /// size  Of the request.
  absl::Status Begin(RequestSize size);
  Made Produce();
  void SuspendUntilNews(Work retry) { SuspendForChanges(follower_.token(), std::move(retry)); }
  void SuspendUntilRoom(Work retry) { SuspendForRoom(std::move(retry)); }
  /// Returns whether events were made: then an end is told by an event.
  bool has_begun() const { return has_begun_; }
  const absl::Status& status() const { return status_; }
  std::string TakeText() { return std::exchange(text_, {}); }

 private:
  /// Adds the next events to text_.
  absl::StatusOr<Made> MakeEvents();
  void AddEvent(std::string_view token, const Json& data);
  /// Returns whether the call may go on.
  absl::Status Check();

  const std::string wanted_;
  ChangeFollower follower_;
  bool has_begun_ = false;
  absl::Status status_;
  std::string text_;
};

}  // namespace kvstore::server
