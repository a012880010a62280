#include "server/resp/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/table.h"
#include "server/resp/commands/words.h"

namespace kvstore::server::resp {
namespace {

/// A row of as many cells as a put may have, and of as many bytes, fits; so does a value that is a little too
/// large, so that its client is told.
constexpr DecoderLimits kCallerLimits{.argument_bytes = kMaxPutBytes,
                                      .arguments = 3 * kMaxPageCells + 64,
                                      .command_bytes = size_t{20} << 20,
                                      .inline_bytes = size_t{64} << 10};
/// Callers who are not known send AUTH or HELLO.
constexpr DecoderLimits kStrangerLimits{.argument_bytes = size_t{4} << 10,
                                        .arguments = 10,
                                        .command_bytes = size_t{16} << 10,
                                        .inline_bytes = size_t{4} << 10};
/// All that a caller may send before it is known, and the time for it.
constexpr size_t kStrangerBytes = size_t{64} << 10;
constexpr std::chrono::seconds kStrangerTime{10};
/// The decoder's memory is not counted up to the first of these, and up to the second one it is granted
/// whether there is room or not.
constexpr size_t kFreeInput = size_t{8} << 10;
constexpr size_t kUsualInput = size_t{64} << 10;
/// With more bytes of answers to be sent nothing is carried out,
constexpr size_t kMaxUnsent = size_t{256} << 10;
/// nor with more than these, where the caller is not known or has filled its share.
constexpr size_t kFewUnsent = size_t{16} << 10;
/// How long a command waits for room among the calls in flight before it is refused, and how often it is
/// tried again: Redis clients do not repeat a command by themselves.
constexpr std::chrono::milliseconds kPatience{1'000};
constexpr std::chrono::milliseconds kTryEvery{5};
/// How long one connection may keep its loop from others.
constexpr std::chrono::milliseconds kMaxTurn{1};
/// A caller with many connections has shorter turns over each of them, so that all of them together do not
/// keep the loop for long: this many full ones, and no shorter than this.
constexpr size_t kFullTurns = 8;
constexpr std::chrono::microseconds kMinTurn{50};
/// Commands of a caller with more connections than this are carried out by workers, except for puts and for
/// reads of a few named columns.
constexpr size_t kManyConnections = 64;
constexpr size_t kFewColumns = 16;
/// The time is looked at after so many commands, or when they have so many words.
constexpr size_t kWordsBetweenLooks = 64;
constexpr size_t kWordsOfCommand = 4;  // that a command counts as at least
/// A client that takes so many bytes of an answer makes progress.
constexpr size_t kProgressBytes = size_t{64} << 10;
/// How long the client may take to end when it was told that this side ends.
constexpr std::chrono::seconds kEndTime{2};
/// How often it is checked whether the caller is still known.
constexpr std::chrono::milliseconds kIdentifyEvery{500};
/// The memory of answers that is kept for the next ones.
constexpr size_t kKeptOutput = size_t{16} << 10;

/// Whether this is the first word of a request of HTTP, as a browser can be made to send it to any port of
/// its machine. The lines of its body would be commands.
bool IsHttp(std::string_view word) { return Is(word, "post") || Is(word, "host:"); }

/// Empties a text, and gives back its memory if that is much. (Assigning an empty text would not: a string
/// keeps its memory for what is assigned to it.)
void ClearText(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptOutput) std::string().swap(text);
}

}  // namespace

Connection::Connection(const Environment& environment, boost::asio::io_context& loop, PutGroups& puts,
                       Turns& turns, std::unique_ptr<Channel> channel, std::string peer,
                       std::function<void(Connection&)> closed)
    : counted_(environment.figures),
      environment_(environment),
      loop_(loop),
      put_groups_(puts),
      turns_(turns),
      channel_(std::move(channel)),
      peer_(std::move(peer)),
      closed_callback_(std::move(closed)),
      id_(environment_.figures.connected.fetch_add(1, std::memory_order_relaxed) + 1),
      session_(environment_.core, Operation::kCalls, Info()),
      decoder_(kStrangerLimits),
      timer_(loop) {}

Connection::~Connection() = default;

CallInfo Connection::Info() {
  return {.transport = *this, .door = Door::kResp, .cancelled = &cancelled_, .is_part_of_stream = true};
}

// ---- the beginning and the end ----

void Connection::Start() { channel_->Open(shared_from_this()); }

void Connection::OnOpened(const boost::system::error_code& error) {
  if (closed_) return;
  if (error) return Close();
  opened_ = true;
  common_name_ = channel_->CommonName();
  const bool known = session_.Authenticate().ok();
  if (const auto status = known ? CountFor(session_.share()) : absl::OkStatus(); !status.ok()) {
    Encoder(out_, version_).Error(ErrorText(status));
    ends_ = true;
    Flush();
    return EndIfDone();
  }
  BecomeKnown(known);
  if (environment_.core.draining.load()) Drain();
  Read();
}

void Connection::Close() {
  if (std::exchange(closed_, true)) return;
  cancelled_.store(true, std::memory_order_relaxed);
  CountFor(nullptr).IgnoreError();
  channel_->Close();
  timer_.cancel();
  closed_callback_(*this);
}

void Connection::Cut() {
  environment_.figures.cut.fetch_add(1, std::memory_order_relaxed);
  Close();
}

void Connection::Cancel() {
  cancelled_.store(true, std::memory_order_relaxed);
  boost::asio::post(loop_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Close();
  });
}

void Connection::Drain() {
  draining_ = true;
  // A client that does not end its handshake would hold up the server's end.
  if (!opened_) return Close();
  if (closed_ || busy_ || yielded_) return;
  // Commands that have arrived are still answered; nothing more is waited for.
  if (!writing_ && out_.empty() && !next_) Close();
}

void Connection::EndIfDone() {
  if (closed_ || ending_ || busy_ || yielded_ || writing_ || !out_.empty()) return;
  if (!run_.empty() || next_ != nullptr) return;
  if (ends_) {
    ending_ = true;
    ending_since_ = Clock::now();
    return channel_->End(shared_from_this());
  }
  if (ended_in_ || draining_) Close();
}

void Connection::CheckTime(Clock::time_point now) {
  if (closed_) return;
  const ServerLimits& limits = environment_.core.options.limits;
  const std::chrono::milliseconds stall(limits.stall_ms);
  if (!known_ && now - stranger_since_ > kStrangerTime) return Cut();
  if (ending_ && now - ending_since_ > kEndTime) return Close();
  if (writing_ && now - write_progress_ > stall) return Cut();
  // Nothing is read while a command is carried out, which would tell that the client is gone. A client that
  // has ended no more than its own sending still gets its answers.
  if (busy_ && channel_->IsGone()) return Close();
  if (busy_ || yielded_ || writing_ || ending_) return;
  if (decoder_.IsInsideCommand() && now - inside_since_ > stall) return Cut();
  if (limits.idle_ms > 0 && now - last_command_ > std::chrono::milliseconds(limits.idle_ms)) return Close();
  if (known_ && now - last_identified_ > kIdentifyEvery) {
    last_identified_ = now;
    if (!session_.CheckCaller().ok()) BecomeKnown(false);
  }
}

// ---- the caller ----

void Connection::BecomeKnown(bool known) {
  known_ = known;
  if (!known) CountFor(nullptr).IgnoreError();
  decoder_.SetLimits(known ? kCallerLimits : kStrangerLimits);
  stranger_bytes_ = 0;
  stranger_since_ = last_identified_ = Clock::now();
}

absl::Status Connection::CountFor(CallerShare* caller) {
  if (caller == counted_for_) return absl::OkStatus();
  const size_t most = environment_.limits.each_caller;
  if (caller != nullptr && caller->resp_connections.fetch_add(1, std::memory_order_relaxed) >= most) {
    caller->resp_connections.fetch_sub(1, std::memory_order_relaxed);
    return WithWord(absl::ResourceExhaustedError(
                        fmt::format("max number of clients reached: the caller has {} connections, half of "
                                    "those that there may be",
                                    most)),
                    "ERR");
  }
  if (counted_for_ != nullptr) counted_for_->resp_connections.fetch_sub(1, std::memory_order_relaxed);
  counted_for_ = caller;
  return absl::OkStatus();
}

std::optional<Connection::Clock::time_point> Connection::StrangerSince() const {
  if (known_) return std::nullopt;
  return stranger_since_;
}

// ---- commands ----

void Connection::Process() {
  if (closed_ || yielded_) return;
  const auto begin = Clock::now();
  CallerShare* const caller = counted_for_;
  if (!turns_.MayBegin(caller, begin)) {
    Flush();  // The answers of earlier commands do not wait.
    return Yield();
  }
  CarryOutWhatArrived(begin);
  // Puts are carried out in a moment, and their answers go with those that are ready.
  if (!busy_ || run_.kind() != Run::Kind::kPuts) Flush();
  EndIfDone();
  Read();
  const auto end = Clock::now();
  turns_.Count(caller, end - begin, end);
}

void Connection::CarryOutWhatArrived(Clock::time_point now) {
  const auto until = now + Turn(now);
  size_t words = 0;
  while (!busy_ && !ends_) {
    if (IsBacklogged()) {
      Flush();
      // The system took all of it at once, so that no end of a write will go on with what has arrived.
      if (!IsBacklogged()) Yield();
      return;
    }
    if (std::exchange(has_rest_, false)) return Launch();
    if (next_ == nullptr && !Decode()) break;
    if (!BeginNext()) return;
    if (run_.CanJoin(*next_)) {
      run_.Add(std::move(next_));
      continue;
    }
    if (!run_.empty()) return Launch();
    if (words >= kWordsBetweenLooks) {
      if (Clock::now() > until) return Yield();
      words = 0;
    }
    words += std::max(kWordsOfCommand, next_->arguments.size());
    Handle(std::exchange(next_, nullptr));
  }
  if (!run_.empty() && !busy_ && !closed_) Launch();
}

size_t Connection::Connections() const {
  return counted_for_ == nullptr ? 1 : counted_for_->resp_connections.load(std::memory_order_relaxed);
}

Connection::Clock::duration Connection::Turn(Clock::time_point now) const {
  if (turns_.IsShared(now)) return Turns::kSharedTurn;
  const size_t all = Connections();
  if (all <= kFullTurns) return kMaxTurn;
  return std::max<Clock::duration>(Clock::duration(kMaxTurn) * kFullTurns / all, kMinTurn);
}

bool Connection::Decode() {
  auto request = spare_ != nullptr ? std::move(spare_) : std::make_unique<Request>();
  const Decoder::State state = decoder_.Next(request->arguments);
  if (state == Decoder::State::kMore) {
    spare_ = std::move(request);
    return false;
  }
  last_command_ = inside_since_ = Clock::now();
  if (state == Decoder::State::kCommand) {
    environment_.figures.commands.fetch_add(1, std::memory_order_relaxed);
    if (IsHttp(request->arguments[0])) {
      Cut();
      return false;
    }
  }
  // Without arguments it stands for what is no command.
  next_ = std::move(request);
  return true;
}

bool Connection::BeginNext() {
  Request& request = *next_;
  if (request.begun) return true;
  // A command is not planned again only to be turned away again.
  if (waits_since_ && known_ && Clock::now() - *waits_since_ < kPatience && !HasRoomFor(session_, request)) {
    WaitForRoom();
    return false;
  }
  request.begun = true;
  if (request.arguments.empty()) return true;
  Examine(request);
  if (!IsTurnedAway(request)) {
    waits_since_.reset();
    return true;
  }
  // Perhaps it is this connection's own commands that are in flight.
  if (!run_.empty()) {
    TakeBack(request);
    Launch();
    return false;
  }
  const auto now = Clock::now();
  if (!waits_since_) waits_since_ = now;
  if (now - *waits_since_ >= kPatience) {
    waits_since_.reset();
    return true;
  }
  TakeBack(request);
  WaitForRoom();
  return false;
}

void Connection::WaitForRoom() {
  timer_.expires_after(kTryEvery);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Process();
  });
}

void Connection::Examine(Request& request) {
  request.command = FindCommand(request.arguments[0]);
  if (request.command == nullptr) {
    request.status = UnknownCommandError(request.arguments[0]);
    return;
  }
  if (!HasArity(*request.command, request.arguments.size())) {
    request.status = absl::InvalidArgumentError(
        fmt::format("wrong number of arguments for '{}' command", request.command->name));
    return;
  }
  const auto* const local = std::get_if<Local>(&request.command->handler);
  if (!known_ && (local == nullptr || !local->for_strangers)) {
    request.status = absl::UnauthenticatedError("the caller is not known");
    return CountStranger(request.status);
  }
  if (local == nullptr) Begin(environment_.core, environment_.cursors, session_, Info(), request);
}

void Connection::Handle(std::unique_ptr<Request> request) {
  Encoder out(out_, version_);
  if (request->arguments.empty()) {
    out.Error(fmt::format("ERR {}", decoder_.error()));
    return EndInput();
  }
  if (!request->status.ok()) {
    // The caller's token was withdrawn.
    if (absl::IsUnauthenticated(request->status) && known_) BecomeKnown(false);
    return Refuse(*request, out);
  }
  if (const auto* const local = std::get_if<Local>(&request->command->handler)) {
    return local->answer(*this, request->arguments, out);
  }
  const bool alone = Run::KindOf(*request) == Run::Kind::kAlone;
  if (!alone) return run_.Add(std::move(request));
  const auto* const store = std::get_if<StoreCommand>(&request->command->handler);
  const auto* const read = std::get_if<ReadPlan>(&request->plan);
  const bool brief = store == nullptr || store->brief;
  const bool short_read =
      read != nullptr && read->options.columns && read->options.columns->size() <= kFewColumns;
  const bool is_long = !brief || (Connections() > kManyConnections && !short_read);
  if (is_long) request->call->MarkAskingForMuch();
  if (is_long || request->call->MayWait()) {
    run_.Add(std::move(request));
    return Launch();
  }
  switch (CarryOut(environment_.core, *request, /*here=*/true, out)) {
    case Outcome::kDone:
      return;
    case Outcome::kSuspended:
      busy_ = true;
      run_.Add(std::move(request));
      return Suspend(shared_from_this());
    case Outcome::kTooLong:
    case Outcome::kPartly:
      request->call->MarkAskingForMuch();
      run_.Add(std::move(request));
      return Launch();
  }
}

// ---- bytes ----

bool Connection::IsBacklogged() const {
  const size_t unsent = out_.size() + sending_.size() - sent_;
  if (unsent <= kFewUnsent) return false;
  return unsent > kMaxUnsent || !known_ || !session_.CallerHasRoom();
}

bool Connection::ReserveInput() {
  const size_t memory = decoder_.MemoryAfterPrepare();
  const size_t wanted = memory > kFreeInput ? memory : 0;
  if (wanted == reserved_bytes_) return true;
  reserved_.reset();
  reserved_bytes_ = wanted;
  // A caller who is not known has little.
  if (wanted == 0 || !known_) return true;
  reserved_ = wanted <= kUsualInput ? session_.HoldBytes(wanted) : session_.ReserveBytes(wanted);
  return reserved_ != nullptr;
}

void Connection::EndInput() {
  environment_.figures.cut.fetch_add(1, std::memory_order_relaxed);
  ends_ = true;
  decoder_.End();
  reserved_.reset();
  reserved_bytes_ = 0;
}

void Connection::Read() {
  if (closed_ || !opened_ || reading_ || busy_ || yielded_ || ends_ || ended_in_ || draining_) return;
  // Commands that were decoded and are not carried out yet point into the decoder.
  if (next_ != nullptr || !run_.empty() || IsBacklogged()) return;
  if (!ReserveInput()) {
    // The part of the command that has arrived cannot be kept, and without it the rest cannot be told from
    // other commands.
    Encoder(out_, version_).Error(ErrorText(MarkRefused(TooManyInFlightError())));
    EndInput();
    Flush();
    return EndIfDone();
  }
  reading_ = true;
  channel_->Read(shared_from_this(), decoder_.Prepare());
}

void Connection::OnRead(const boost::system::error_code& error, size_t bytes) {
  reading_ = false;
  if (closed_) return;
  if (error && error != boost::asio::error::eof) return Close();
  if (error) {
    ended_in_ = true;
    return Process();
  }
  if (!decoder_.IsInsideCommand()) inside_since_ = Clock::now();
  decoder_.Commit(bytes);
  if (!known_ && (stranger_bytes_ += bytes) > kStrangerBytes) return Cut();
  Process();
}

void Connection::Flush() {
  if (closed_ || out_.empty()) return;
  if (writing_) return HoldWaiting();
  const size_t sent = channel_->TryWrite(out_);
  if (sent == out_.size()) {
    ClearText(out_);
    return;
  }
  sending_.swap(out_);
  sent_ = sent;
  held_waiting_.reset();
  held_waiting_bytes_ = 0;
  if (known_) held_ = session_.HoldBytes(sending_.capacity());
  writing_ = true;
  write_progress_ = Clock::now();
  written_since_ = 0;
  channel_->Write(shared_from_this(), std::string_view(sending_).substr(sent_));
}

void Connection::HoldWaiting() {
  if (!known_ || out_.size() <= kFewUnsent || out_.capacity() == held_waiting_bytes_) return;
  held_waiting_.reset();
  held_waiting_ = session_.HoldBytes(out_.capacity());
  held_waiting_bytes_ = out_.capacity();
}

void Connection::OnWritten(const boost::system::error_code& error, size_t bytes) {
  if (closed_) return;
  if (error) return Close();
  sent_ += bytes;
  written_since_ += bytes;
  if (written_since_ >= kProgressBytes) {
    write_progress_ = Clock::now();
    written_since_ = 0;
  }
  if (sent_ < sending_.size()) {
    return channel_->Write(shared_from_this(), std::string_view(sending_).substr(sent_));
  }
  writing_ = false;
  inside_since_ = Clock::now();
  ClearText(sending_);
  sent_ = 0;
  held_.reset();
  Process();
}

}  // namespace kvstore::server::resp
