#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/resp/connection.h"

/// Commands of a connection that are carried out elsewhere: by workers, or together with those of other
/// connections.
namespace kvstore::server::resp {

void Connection::Track() {
  for (const auto& request : run_.requests()) {
    if (!request->done && !std::exchange(request->tracked, true)) request->call->Track();
  }
}

void Connection::Launch() {
  busy_ = true;
  if (run_.kind() == Run::Kind::kPuts) return put_groups_.here.Add(shared_from_this());
  Track();
  if (run_.kind() == Run::Kind::kFlushedPuts) return put_groups_.flushed.Add(shared_from_this());
  run_.requests().front()->call->Post([self = shared_from_this()]() mutable { WorkOnRun(std::move(self)); });
}

void Connection::WorkOnRun(std::shared_ptr<Connection> self) {
  const Outcome outcome = self->run_.CarryOut(self->environment_.core, self->version_);
  if (outcome == Outcome::kSuspended) return Suspend(std::move(self));
  // The connection must not be destroyed by this thread, so the loop gets this reference to it.
  boost::asio::io_context& loop = self->loop_;
  boost::asio::post(loop, [self = std::move(self)] { self->RunDone(); });
}

void Connection::Suspend(std::shared_ptr<Connection> self) {
  Connection& suspended = *self;
  Core& core = suspended.environment_.core;
  suspended.Track();
  const Requests& requests = suspended.run_.requests();
  const auto first =
      std::find_if(requests.begin(), requests.end(), [](const auto& request) { return !request->done; });
  const Lane lane = (*first)->call->WorkerLane();
  core.suspended.Add({.due =
                          [&requests](Clock::time_point now) {
                            return std::any_of(requests.begin(), requests.end(), [&](const auto& request) {
                              return !request->done && request->call->IsDue(now);
                            });
                          },
                      .retry = [self = std::move(self)]() mutable { WorkOnRun(std::move(self)); },
                      .lane = lane});
}

void Connection::PutsDone(Clock::duration took) {
  turns_.Count(counted_for_, took, Clock::now());
  if (!run_.HasUndone()) return RunDone();
  Flush();
  Suspend(shared_from_this());
}

void Connection::RunDone() {
  busy_ = false;
  // The rest of a command could not be read meanwhile.
  inside_since_ = Clock::now();
  Encoder out(out_, version_);
  run_.TakeAnswers(out);
  if (closed_) return run_.Clear();
  // Large answers are sent before more of them are made.
  has_rest_ = !run_.empty();
  Process();
}

void Connection::Yield() {
  if (!std::exchange(yielded_, true)) turns_.Wait(counted_for_, shared_from_this());
}

void Connection::TakeTurn() {
  yielded_ = false;
  Process();
}

}  // namespace kvstore::server::resp
