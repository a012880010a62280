#include <nlohmann/json.hpp>
#include <utility>

#include "server/http/connection.h"
#include "server/http/connection_limits.h"

/// Requests that follow a dataset: events as changes come, until the client leaves.
namespace kvstore::server {

void Connection::BeginFollowing(const Route& route) {
  // A browser that connects again names the event that it had last.
  const std::string from =
      head_.last_event_id.empty() ? route.request->at("from").get<std::string>() : head_.last_event_id;
  follow_ = std::make_unique<ChangeEvents>(door_.core, Info(),
                                           route.request->at("dataset").get<std::string>(), from);
  absl::Status status;
  if (head_.is_http10) {
    status = absl::InvalidArgumentError("version: events need HTTP/1.1, whose bodies come in chunks");
  } else if (head_.has_body()) {
    status = absl::InvalidArgumentError("body: a GET has none");
  }
  if (!status.ok()) {
    follow_->End(status);
    return Reject(HttpStatusOf(status), status);
  }
  status = follow_->Begin({.bytes = head_.target.size(), .memory = head_.target.size() + kBareRequestBytes});
  if (follow_->share() != nullptr) MarkKnown(follow_->share());
  if (!status.ok()) return Reject(HttpStatusOf(status), status, LinesOf(status));
  state_ = State::kFollow;
  running_ = true;
  follow_->Post([self = shared_from_this()] { self->ProduceEvents(); });
}

void Connection::ProduceEvents() {
  const auto again = [self = shared_from_this()] { self->ProduceEvents(); };
  made_ = follow_->Produce();
  switch (made_) {
    case ChangeEvents::Made::kNothingYet:
      return follow_->SuspendUntilNews(again);
    case ChangeEvents::Made::kNoRoom:
      return follow_->SuspendUntilRoom(again);
    case ChangeEvents::Made::kEvents:
    case ChangeEvents::Made::kEnd:
      return FinishCall();
  }
}

void Connection::TakeEvents() {
  const bool ended = made_ == ChangeEvents::Made::kEnd;
  if (!has_followed_) {
    if (ended) return Reject(HttpStatusOf(follow_->status()), follow_->status());
    close_after_ = true;
    AnswerHead head{.type = kEventsType, .length = std::nullopt, .keep_alive = false};
    head.instance = door_.instance;
    head.origin = head_.origin;
    Send(WriteHead(head));
    has_followed_ = true;
  }
  if (out_.empty()) {
    out_held_.clear();
    // The client had nothing to take until now.
    pace_ = Pace();
  }
  if (std::string text = follow_->TakeText(); !text.empty()) {
    auto chunk = std::make_shared<const std::string>(ChunkOf(text));
    out_held_.push_back(follow_->HoldBytes(chunk->size()));
    Send(std::move(chunk));
  }
  if (!ended) return;
  Send(std::string(kLastChunk));
  state_ = State::kAnswer;
}

bool Connection::AdvanceFollowing() {
  if (out_.empty()) out_held_.clear();
  // It would last as long as its client likes.
  if (draining_) gone_.store(true, std::memory_order_relaxed);
  if (running_) return false;
  if (ended_) {
    Close();
    return false;
  }
  if (out_bytes_ >= kMaxUnreadAnswers) return false;
  running_ = true;
  follow_->Post([self = shared_from_this()] { self->ProduceEvents(); });
  return false;
}

}  // namespace kvstore::server
