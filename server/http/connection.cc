#include "server/http/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/call/connections.h"
#include "server/call/unsent.h"
#include "server/http/connection_limits.h"

namespace kvstore::server {
namespace {

using tcp = boost::asio::ip::tcp;

void Configure(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  // A client whose machine is gone is noticed after a minute, also while its call runs.
  const int idle_s = 30;
  const int interval_s = 10;
  const int probes = 3;
  const int handle = socket.native_handle();
  ::setsockopt(handle, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  ::setsockopt(handle, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  ::setsockopt(handle, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  LimitUnsent(handle, static_cast<int>(kMaxWritten));
}

}  // namespace

Connection::Connection(HttpDoor& door, tcp::socket socket)
    : place_(door.connections),
      door_(door),
      stream_(ByteStream::Make(std::move(socket), door.Tls())),
      strand_(stream_->socket().get_executor()),
      timer_(strand_),
      look_timer_(strand_),
      peer_(PeerOf(stream_->socket().native_handle())) {
  Configure(stream_->socket());
}

Connection::~Connection() = default;

void Connection::Start() {
  std::shared_ptr<Connection> evicted;
  const bool added = door_.connections.Add(shared_from_this(), place_, evicted);
  if (evicted != nullptr) evicted->Stop();
  if (!added) return;
  boost::asio::post(strand_, [self = shared_from_this()] { self->Shake(); });
}

void Connection::Drain() {
  boost::asio::post(strand_, [self = shared_from_this()] {
    self->draining_ = true;
    if (self->state_ != State::kHandshake && self->state_ != State::kClosed) self->Step();
  });
}

void Connection::Stop() {
  // A call may be cancelled in the moment in which its connection ends.
  const auto self = weak_from_this().lock();
  if (self != nullptr) boost::asio::post(strand_, [self] { self->Close(); });
}

void Connection::Shake() {
  if (door_.draining.load()) draining_ = true;
  SetTimer();
  stream_->Handshake([self = shared_from_this()](Error error) {
    if (self->state_ == State::kClosed) return;
    if (error) return self->Close();
    self->common_name_ = self->stream_->CommonName();
    self->state_ = State::kHead;
    self->pace_ = Pace();
    self->Step();
  });
}

void Connection::Step() {
  while (state_ != State::kClosed && Advance()) {
  }
  if (state_ == State::kClosed) return;
  Read();
  Write();
  SetTimer();
}

bool Connection::Advance() {
  switch (state_) {
    case State::kHead:
      return AdvanceHead();
    case State::kBody:
      return AdvanceBody();
    case State::kAnswer:
      return AdvanceAnswer();
    case State::kExec:
      return AdvanceExec();
    case State::kFollow:
      return AdvanceFollowing();
    case State::kEnding:
      if (ended_ || pace_.bytes > kMaxLingering) Close();
      return false;
    case State::kHandshake:
    case State::kCall:
    case State::kClosed:
      return false;
  }
  return false;
}

// ---- bytes ----

void Connection::Read() {
  if (state_ == State::kHandshake || reading_ || ended_) return;
  if (input().size() >= kMaxAhead) {
    if (running_) LookForClient();
    return;
  }
  reading_ = true;
  stream_->ReadSome(boost::asio::buffer(piece_),
                    [self = shared_from_this()](Error error, size_t size) { self->OnRead(error, size); });
}

void Connection::LookForClient() {
  if (std::exchange(looking_, true)) return;
  look_timer_.expires_after(kLookForClient);
  look_timer_.async_wait([self = shared_from_this()](Error error) {
    self->looking_ = false;
    if (error || !self->running_ || self->state_ == State::kClosed) return;
    pollfd client{.fd = self->stream_->socket().native_handle(), .events = POLLRDHUP, .revents = 0};
    // The end of what it sends may stand after bytes that are not read.
    if (::poll(&client, 1, 0) > 0) self->gone_.store(true, std::memory_order_relaxed);
    self->Read();
  });
}

void Connection::OnRead(Error error, size_t size) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    ended_ = true;
    // Whoever closes the connection while a call runs, or in the middle of lines or events, gives that up.
    if (running_ || state_ == State::kExec || state_ == State::kFollow)
      gone_.store(true, std::memory_order_relaxed);
  } else if (state_ == State::kEnding) {
    pace_.Add(size);
  } else {
    if (state_ == State::kBody || state_ == State::kExec) pace_.Add(size);
    in_.erase(0, std::exchange(in_begin_, 0));
    in_.append(piece_.data(), size);
  }
  Step();
}

void Connection::Consume(size_t bytes) {
  in_begin_ += bytes;
  if (in_begin_ < in_.size()) return;
  in_.clear();
  in_begin_ = 0;
}

void Connection::Send(std::shared_ptr<const std::string> bytes) {
  if (bytes->empty()) return;
  out_bytes_ += bytes->size();
  out_.push_back(std::move(bytes));
}

void Connection::Send(std::string bytes) { Send(std::make_shared<const std::string>(std::move(bytes))); }

void Connection::Write() {
  if (writing_ || out_.empty()) return;
  writing_ = true;
  const std::string_view rest = std::string_view(*out_.front()).substr(sent_, kMaxWritten);
  stream_->WriteSome(boost::asio::buffer(rest.data(), rest.size()),
                     [self = shared_from_this()](Error error, size_t size) { self->OnWritten(error, size); });
}

void Connection::OnWritten(Error error, size_t size) {
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  sent_ += size;
  out_bytes_ -= size;
  pace_.Add(size);
  if (sent_ == out_.front()->size()) {
    out_.pop_front();
    sent_ = 0;
  }
  Step();
}

// ---- time ----

Connection::Clock::time_point Connection::DeadlineOf(const Pace& pace) const {
  const std::chrono::milliseconds stall(door_.core.options.limits.stall_ms);
  // Bytes that a client took at once, perhaps into buffers of the system, do not buy it time to take nothing.
  const auto average = pace.since + std::chrono::milliseconds(pace.bytes * 1'000 / kMinBytesPerSecond);
  return std::min<Clock::time_point>(average, pace.last) + stall;
}

std::optional<Connection::Clock::time_point> Connection::Deadline() const {
  const std::chrono::milliseconds stall(door_.core.options.limits.stall_ms);
  const auto patience = std::min<std::chrono::milliseconds>(kHeadTimeout, stall);
  switch (state_) {
    case State::kHandshake:
      return pace_.since + patience;
    case State::kHead:
      // A caller who has made no request yet is not waited for.
      return pace_.since + (parser_ || requests_ == 0 ? patience : kIdleTimeout);
    case State::kBody:
    case State::kAnswer:
      return DeadlineOf(pace_);
    case State::kExec:
      // While a line is carried out and nothing is to be sent, the client waits and not the server.
      if (running_ && out_.empty()) return std::nullopt;
      return DeadlineOf(pace_);
    case State::kFollow:
      // While nothing is written there is nothing to take.
      if (out_.empty()) return std::nullopt;
      return DeadlineOf(pace_);
    case State::kEnding:
      return pace_.since + kLingerTimeout;
    case State::kCall:
    case State::kClosed:
      return std::nullopt;
  }
  return std::nullopt;
}

void Connection::SetTimer() {
  deadline_ = Deadline();
  // A wait that ends earlier looks again then.
  if (!deadline_ || (timer_at_ && *timer_at_ <= *deadline_)) return;
  timer_at_ = deadline_;
  timer_.expires_at(*timer_at_);
  timer_.async_wait([self = shared_from_this(), at = *timer_at_](Error error) {
    if (error || self->timer_at_ != at || self->state_ == State::kClosed) return;
    self->timer_at_.reset();
    if (self->deadline_ && Clock::now() >= *self->deadline_) return self->Close();
    self->SetTimer();
  });
}

// ---- the end ----

void Connection::End() {
  state_ = State::kEnding;
  pace_ = Pace();
  in_.clear();
  in_begin_ = 0;
  stream_->EndSending([self = shared_from_this()] { self->Close(); });
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  gone_.store(true, std::memory_order_relaxed);
  Error ignored;
  timer_.cancel(ignored);
  look_timer_.cancel(ignored);
  stream_->socket().close(ignored);
  // A call in progress uses the rest, which stays until OnCallDone.
  if (running_) return;
  Forget();
}

void Connection::Forget() {
  call_.reset();
  ReleaseBody();
  out_held_.clear();
  exec_.reset();
  follow_.reset();
  has_followed_ = false;
}

void Connection::FinishCall() {
  boost::asio::post(strand_, [self = shared_from_this()] { self->OnCallDone(); });
}

void Connection::OnCallDone() {
  running_ = false;
  if (state_ == State::kClosed) return Forget();
  if (state_ == State::kExec) {
    AddAnswer();
  } else if (state_ == State::kFollow) {
    TakeEvents();
  } else {
    AnswerCall();
  }
  Step();
}

}  // namespace kvstore::server
