#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/free_text.h"
#include "json/json.h"
#include "json/value_count.h"
#include "server/http/connection.h"
#include "server/http/connection_limits.h"

/// Requests with one answer each.
namespace kvstore::server {
namespace {

namespace http = boost::beast::http;

/// How much of a body is decoded at a time.
constexpr size_t kDecoded = size_t{16} << 10;
/// An answer up to this size is copied after its head, so that both are sent at once.
constexpr size_t kCopiedBytes = size_t{64} << 10;

absl::Status TooLarge(size_t most) {
  return absl::InvalidArgumentError(fmt::format("body: is larger than the limit of {} bytes", most));
}

/// Returns whether a line of a head begins with a blank. The parser takes it for more of the line before it;
/// somebody in front of this server may not.
bool HasFoldedLine(std::string_view head) {
  return head.find("\n ") != std::string_view::npos || head.find("\n\t") != std::string_view::npos;
}

}  // namespace

// ---- heads ----

void Connection::MarkKnown(const CallerShare* caller) {
  const ConnectionList::TooMany too_many = door_.connections.MarkKnown(place_, caller);
  if (too_many.drain != nullptr) too_many.drain->Drain();
  if (too_many.stop != nullptr) too_many.stop->Stop();
}

bool Connection::AdvanceHead() {
  if (draining_ && !parser_ && input().empty()) {
    End();
    return false;
  }
  // Some clients send an empty line after a body.
  while (!parser_ && (input().starts_with('\r') || input().starts_with('\n'))) Consume(1);
  while (!input().empty()) {
    if (!parser_) {
      parser_.emplace();
      parser_->header_limit(kMaxHeadBytes);
      parser_->body_limit(
          std::numeric_limits<uint64_t>::max());  // OnHead knows the limit; Beast 1.74 takes none for 0
      head_bytes_ = 0;
      pace_ = Pace();
    }
    boost::system::error_code error;
    const size_t parsed = parser_->put(boost::asio::buffer(input().data(), input().size()), error);
    head_bytes_ += parsed;
    const bool folded = HasFoldedLine(input().substr(0, parsed));
    Consume(parsed);
    const bool waits = error == http::error::need_more;
    // The parser's own limit is one of what it gets at once.
    if (head_bytes_ + (waits ? input().size() : 0) > kMaxHeadBytes || error == http::error::header_limit) {
      Reject(431, absl::InvalidArgumentError(
                      fmt::format("head: is larger than the limit of {} bytes", kMaxHeadBytes)));
      return true;
    }
    if (waits) break;
    if (!error && folded) {
      Reject(400, absl::InvalidArgumentError("head: a line begins with a blank"));
      return true;
    }
    if (error) {
      Reject(400, absl::InvalidArgumentError(fmt::format("request: is not HTTP/1.1: {}", error.message())));
      return true;
    }
    if (parser_->is_header_done()) {
      OnHead();
      return true;
    }
  }
  if (ended_) Close();
  return false;
}

void Connection::OnHead() {
  ++requests_;
  pace_ = Pace();
  close_after_ = true;  // unless the head can be understood
  auto head = ReadHead(*parser_);
  if (!head.ok()) return Reject(400, head.status());
  head_ = *std::move(head);
  close_after_ = !head_.keep_alive;
  if (!head_.origin.empty() && !door_.Allows(head_.origin) && !door_.IsOwn(head_.origin, head_.host)) {
    return Reject(403,
                  absl::PermissionDeniedError(
                      "Origin: pages of this origin may not use the server; name it in server.http_origins"));
  }
  if (!door_.Serves(head_.host)) {
    return Reject(
        403, absl::PermissionDeniedError(
                 "Host: a server without tokens that listens on this machine only accepts localhost and IP "
                 "addresses, because a web page could reach it under a name of its own (DNS rebinding)"));
  }
  if (head_.method == "OPTIONS") return OnPreflight();
  Route route = FindRoute(head_.method, head_.target);
  // Whoever follows a link from another site's page to the console comes from that site.
  if (route.kind == Route::Kind::kConsole) return OnConsole(*route.file);
  if (head_.is_cross_site && head_.origin.empty()) {
    return Reject(403, absl::PermissionDeniedError("Sec-Fetch-Site: a page of another site asks, which does "
                                                   "not say its origin; it must ask by fetch()"));
  }
  if (route.kind == Route::Kind::kHealthz || route.kind == Route::Kind::kReadyz) return OnPage(route.kind);
  if (route.kind == Route::Kind::kOperation) return OnOperation(std::move(route));
  if (route.kind == Route::Kind::kExec) return BeginExec();
  if (route.kind == Route::Kind::kChanges) return BeginFollowing(route);
  // Strangers are told nothing of what there is.
  const auto known = door_.core.access->Identify(head_.authorization, common_name_);
  if (!known.ok()) {
    Call(door_.core, Operation::kCalls, Info()).End(known.status());
    return Reject(401, known.status());
  }
  // Where everybody may do everything there are no principals.
  MarkKnown(*known != nullptr ? (*known)->share : &door_.core.access->nobody());
  if (route.kind == Route::Kind::kOpenApi) return Answer({}, door_.openapi);
  Reject(route.status, route.error, route.allow.empty() ? "" : fmt::format("Allow: {}\r\n", route.allow));
}

void Connection::OnPreflight() {
  if (head_.origin.empty() || head_.asked_method.empty())
    return Reject(405, absl::InvalidArgumentError("method: must be GET or POST"), "Allow: GET, POST\r\n");
  Answer({.status = 204,
          .type = {},
          .more = "Access-Control-Allow-Methods: GET, POST\r\n"
                  "Access-Control-Allow-Headers: Authorization, Content-Type, Kv-Timeout-Ms, Kv-Request-Id, "
                  "Kv-First-Instance, Last-Event-ID\r\n"
                  "Access-Control-Max-Age: 600\r\n"},
         std::make_shared<const std::string>());
}

void Connection::OnPage(Route::Kind kind) {
  const bool good =
      kind == Route::Kind::kHealthz || (!door_.core.draining.load() && door_.core.router.CheckWrites().ok());
  Answer({.status = good ? 200 : 503, .type = "text/plain"},
         std::make_shared<const std::string>(good ? "ok\n" : "not ready\n"));
}

void Connection::OnConsole(const ConsoleFile& file) {
  // The page may load what this server has, and nothing else; no other page may show it within itself.
  const std::string more = fmt::format(
      "ETag: W/\"{}\"\r\nVary: Accept-Encoding\r\nContent-Security-Policy: default-src 'self'; base-uri "
      "'none'; "
      "form-action 'none'; frame-ancestors 'none'; object-src 'none'\r\nReferrer-Policy: no-referrer\r\n",
      file.tag);
  // A new version of the program has other files under the same names, so a browser asks each time.
  constexpr std::string_view kAskAgain = "no-cache";
  if (head_.if_none_match == "*" ||
      head_.if_none_match.find(fmt::format("\"{}\"", file.tag)) != std::string::npos) {
    return Answer({.status = 304, .type = {}, .cache = kAskAgain, .more = more},
                  std::make_shared<const std::string>());
  }
  if (!head_.takes_gzip) return Answer({.type = file.type, .cache = kAskAgain, .more = more}, file.bytes);
  Answer({.type = file.type, .cache = kAskAgain, .more = more + "Content-Encoding: gzip\r\n"}, file.gzip);
}

CallInfo Connection::Info() {
  CallInfo info{.transport = *this, .door = Door::kHttp, .cancelled = &gone_};
  if (head_.timeout) info.deadline = info.begun + *head_.timeout;
  return info;
}

void Connection::OnOperation(Route route) {
  call_ = std::make_unique<JsonCall>(
      door_.core, *route.operation, Info(),
      JsonCall::Repetition{.request_id = head_.request_id, .first_instance = head_.first_instance});
  absl::Status status = call_->Identify();
  const bool for_anybody = route.operation->operation == Operation::kGetServer;
  if (status.ok() && !for_anybody) MarkKnown(call_->share());
  max_body_ = for_anybody ? kMaxBodyOfAnybody : route.operation->read ? kMaxFormBytes : kMaxBodyBytes;
  max_values_ = for_anybody ? kMaxValuesOfAnybody : kMaxBodyValues;
  if (status.ok()) status = route.error;
  if (status.ok() && route.request && head_.has_body())
    status = absl::InvalidArgumentError("body: a GET has none");
  if (!status.ok()) return RefuseCall(status);
  if (!route.request) {
    if (head_.content_length > max_body_) return RefuseCall(TooLarge(max_body_), 413);
    if (!HoldBody(*call_, head_.content_length + kDecoded))
      return RefuseCall(MarkRefused(TooManyInFlightError()));
    body_.reserve(head_.content_length + kDecoded);
    parameters_ = std::move(route.parameters);
    state_ = State::kBody;
    return Continue();
  }
  state_ = State::kCall;
  running_ = true;
  call_->SetRequest(*std::move(route.request));
  AdmitAndRun({.bytes = head_.target.size(), .memory = head_.target.size() + kBareRequestBytes});
}

// ---- bodies ----

void Connection::Continue() {
  if (head_.expects_continue && !head_.is_http10 && head_.has_body() && input().empty())
    Send("HTTP/1.1 100 Continue\r\n\r\n");
}

bool Connection::HoldBody(Call& call, size_t bytes) {
  if (bytes <= std::max(held_bytes_, kParsedHere)) return true;
  auto held = call.ReserveBytes(bytes - held_bytes_);
  if (held == nullptr) return false;
  held_.push_back(std::move(held));
  held_bytes_ = bytes;
  return true;
}

void Connection::ReleaseBody() {
  held_.clear();
  held_bytes_ = 0;
}

absl::Status Connection::DecodeBody(std::string& bytes) {
  const size_t before = bytes.size();
  bytes.resize(before + kDecoded);
  auto& buffer = parser_->get().body();
  buffer.data = bytes.data() + before;
  buffer.size = kDecoded;
  parser_->eager(true);
  boost::system::error_code error;
  const size_t parsed = parser_->put(boost::asio::buffer(input().data(), input().size()), error);
  bytes.resize(before + kDecoded - buffer.size);
  Consume(parsed);
  if (!error || error == http::error::need_buffer) return absl::OkStatus();
  // The end of a chunk, and what may follow the last one, must fit into what is read ahead.
  if (error == http::error::need_more && input().size() < kMaxAhead) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("body: its chunks are wrong: {}", error.message()));
}

bool Connection::AdvanceBody() {
  while (!parser_->is_done() && !input().empty()) {
    const size_t before = input().size();
    if (const absl::Status status = DecodeBody(body_); !status.ok()) {
      close_after_ = true;  // nobody knows where it ends
      RefuseCall(status);
      return true;
    }
    if (body_.size() > max_body_) {
      RefuseCall(TooLarge(max_body_), 413);
      return true;
    }
    if (!HoldBody(*call_, body_.capacity())) {
      RefuseCall(MarkRefused(TooManyInFlightError()));
      return true;
    }
    if (input().size() == before) break;  // the rest of a chunk's line has to come first
  }
  if (!parser_->is_done()) {
    if (ended_) Close();
    return false;
  }
  state_ = State::kCall;
  running_ = true;
  if (body_.size() <= kParsedHere) {
    ParseAndRun();
  } else {
    call_->Post([self = shared_from_this()] { self->ParseAndRun(); });
  }
  return false;
}

absl::Status Connection::ParseBody() {
  if (const auto& read = call_->served().read) {
    auto form = ParseForm(body_);
    if (!form.ok()) return form.status();
    // Grafana adds parameters of its own to the address.
    parameters_.insert(parameters_.end(), std::make_move_iterator(form->begin()),
                       std::make_move_iterator(form->end()));
    auto request = read(std::exchange(parameters_, {}));
    if (!request.ok()) return request.status();
    call_->SetRequest(*std::move(request));
    return absl::OkStatus();
  }
  // A request without fields may as well have no body.
  if (body_.empty()) body_ = "{}";
  auto request = ParseJson(body_, kMaxEnvelopeDepth);
  if (!request.ok()) return request.status();
  call_->SetRequest(*std::move(request));
  return absl::OkStatus();
}

void Connection::ParseAndRun() {
  const size_t values = CountJsonValues(body_);
  const RequestSize size = {.bytes = body_.size(),
                            .memory = body_.size() + values * kJsonValueBytes + kBareRequestBytes};
  // From here on the body is counted with the values that it becomes; later the admitted call counts both.
  ReleaseBody();
  absl::Status status;
  if (values > max_values_) {
    status = absl::InvalidArgumentError(
        fmt::format("body: has more than {} values; send it as several requests", max_values_));
  } else if (!HoldBody(*call_, size.memory)) {
    status = MarkRefused(TooManyInFlightError());
  }
  if (status.ok()) status = ParseBody();
  FreeText(body_);
  ReleaseBody();
  if (status.ok()) return AdmitAndRun(size);
  call_->Refuse(status);
  FinishCall();
}

void Connection::AdmitAndRun(RequestSize size) {
  if (const absl::Status status = call_->Admit(size); !status.ok()) {
    call_->Refuse(status);
    return FinishCall();
  }
  call_->Run([self = shared_from_this()] { self->Execute(); });
}

void Connection::Execute() {
  if (!call_->Execute()) return call_->SuspendUntilRetry([self = shared_from_this()] { self->Execute(); });
  FinishCall();
}

// ---- answers ----

void Connection::Reject(int status, const absl::Status& error, std::string more) {
  // The end of a request that cannot be understood is not known either, and a stranger gets one answer.
  if (status == 400 || status == 401 || status == 431) close_after_ = true;
  Answer({.status = status, .more = LinesOf(error) + std::move(more)},
         std::make_shared<const std::string>(BodyOf(error)));
}

void Connection::RefuseCall(const absl::Status& error, std::optional<int> status) {
  call_->Refuse(error);
  AnswerCall(status);
}

void Connection::AnswerCall(std::optional<int> status) {
  const absl::Status& end = call_->status();
  // A stranger gets one answer.
  if (absl::IsUnauthenticated(end)) close_after_ = true;
  Answer({.status = status.value_or(HttpStatusOf(end)), .more = LinesOf(end)},
         std::make_shared<const std::string>(call_->TakeText()));
}

void Connection::Answer(AnswerHead head, std::shared_ptr<const std::string> body) {
  if (parser_ && !parser_->is_done()) close_after_ = true;
  if (draining_ || door_.core.draining.load(std::memory_order_relaxed)) close_after_ = true;
  head.length = body->size();
  head.keep_alive = !close_after_;
  head.instance = door_.instance;
  if (!head_.origin.empty() && door_.Allows(head_.origin)) head.origin = head_.origin;
  std::string text = WriteHead(head);
  if (head_.method == kHeadMethod) {
    // Whoever asks for the head takes bytes after it for the next answer.
    Send(std::move(text));
  } else if (body->size() <= kCopiedBytes) {
    Send(text + *body);
  } else {
    Send(std::move(text));
    Send(std::move(body));
  }
  FreeText(body_);
  state_ = State::kAnswer;
  pace_ = Pace();
}

bool Connection::AdvanceAnswer() {
  if (writing_ || !out_.empty()) return false;
  // The memory of the answer is counted until here.
  Forget();
  if (close_after_) {
    End();
    return false;
  }
  head_ = RequestHead();
  parser_.reset();
  state_ = State::kHead;
  pace_ = Pace();
  return true;
}

}  // namespace kvstore::server
