#pragma once

#include <array>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/http/byte_stream.h"
#include "server/http/change_events.h"
#include "server/http/door.h"
#include "server/http/http_answer.h"
#include "server/http/json_call.h"
#include "server/http/line_splitter.h"
#include "server/http/request_head.h"
#include "server/http/routes.h"

namespace kvstore::server {

/// A connection of the HTTP API: its requests, one after the other, and their answers.
///
/// Everything runs on the strand of its socket, except for the work of a call, which may run on a worker;
/// meanwhile the strand touches nothing of the call, or of its request. The strand is told of what happens
/// (bytes have come, were sent, a call has ended, it is late) and then takes as many steps as it can (Step).
/// The memory that a client which sends much or takes nothing can occupy is bounded: by constants before the
/// client is known, and by its share of the bytes in flight from then on.
class Connection : public std::enable_shared_from_this<Connection>, private CallTransport {
 public:
  /// door  Must outlive the connection.
  Connection(HttpDoor& door, boost::asio::ip::tcp::socket socket);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins to read. Closes others, or itself, where there are too many.
  void Start();
  /// Ends the connection as soon as no request is in flight. Thread-safe.
  void Drain();
  /// Ends the connection now, with what is in flight. Thread-safe.
  void Stop();

 private:
  using Clock = CallInfo::Clock;
  using Error = ByteStream::Error;

  enum class State {
    kHandshake,
    kHead,    ///< The head of a request is being read, or none has come yet.
    kBody,    ///< The body of a request is being read.
    kCall,    ///< A call is being carried out.
    kAnswer,  ///< An answer is being sent.
    kExec,    ///< Lines are read, carried out and answered.
    kFollow,  ///< Changes of a dataset are sent as they come.
    kEnding,  ///< Everything was sent. Further input is thrown away, so that the client reads the answer
              ///< first.
    kClosed,
  };

  /// How much of a body was read or of an answer was sent since when, which tells who is slow.
  struct Pace {
    void Add(size_t more) {
      bytes += more;
      last = Clock::now();
    }

    Clock::time_point since = Clock::now();
    Clock::time_point last = since;  ///< When something was read or sent.
    size_t bytes = 0;
  };

  // ---- connection.cc: what happens on the connection ----
  void Shake();
  void OnRead(Error error, size_t size);
  void OnWritten(Error error, size_t size);
  void OnCallDone();
  void Step();
  /// Takes a step; returns whether another one may follow.
  bool Advance();
  void Read();
  /// Looks now and then whether the client is still there, as long as a call runs and nothing is read.
  void LookForClient();
  void Write();
  void SetTimer();
  std::optional<Clock::time_point> Deadline() const;
  /// Returns when a client that sends or takes too slowly, or nothing any more, has had its time.
  Clock::time_point DeadlineOf(const Pace& pace) const;
  void Send(std::string bytes);
  void Send(std::shared_ptr<const std::string> bytes);
  std::string_view input() const { return std::string_view(in_).substr(in_begin_); }
  void Consume(size_t bytes);
  /// Says goodbye, when everything was sent.
  void End();
  void Close();
  /// Gives back what a request, and its answer, took.
  void Forget();
  /// Tells the strand that the call has ended. Called by the thread that carried it out.
  void FinishCall();

  // ---- connection_requests.cc: requests with one answer ----
  bool AdvanceHead();
  /// The caller is known.
  void MarkKnown(const CallerShare* caller);
  bool AdvanceBody();
  bool AdvanceAnswer();
  /// Acts on the head of a request, which has been read.
  void OnHead();
  void OnPreflight();
  void OnPage(Route::Kind kind);
  void OnConsole(const ConsoleFile& file);
  void OnOperation(Route route);
  /// Parses the body, and admits and carries out the call. Perhaps on a worker.
  void ParseAndRun();
  absl::Status ParseBody();
  void AdmitAndRun(RequestSize size);
  void Execute();
  /// Decodes a piece of the body onto the end of `bytes`. INVALID_ARGUMENT if the client has sent what is no
  /// body: nothing that follows can be understood then.
  absl::Status DecodeBody(std::string& bytes);
  /// Counts what was read of a body, or of a line, so many bytes in all. Returns false if there is no room
  /// for them.
  bool HoldBody(Call& call, size_t bytes);
  void ReleaseBody();
  /// Asks the client to send the body that it waits with.
  void Continue();
  CallInfo Info();
  /// Answers with an error that belongs to no call.
  void Reject(int status, const absl::Status& error, std::string more = {});
  /// Ends the call with an error before it was carried out, and answers.
  ///
  /// status  For HTTP, if not that of the error.
  void RefuseCall(const absl::Status& error, std::optional<int> status = std::nullopt);
  void AnswerCall(std::optional<int> status = std::nullopt);
  void Answer(AnswerHead head, std::shared_ptr<const std::string> body);

  // ---- connection_exec.cc: lines with an answer each ----
  void BeginExec();
  bool AdvanceExec();
  /// Reads a piece of the body into lines_. Returns false if more has to come first, or the connection has
  /// ended.
  bool TakeLines();
  void StartLine(std::string line);
  /// Parses a line, and admits and carries out its call. Perhaps on a worker.
  void ParseLine();
  /// Answers a line that became no call.
  ///
  /// request  What it says, as far as it is known.
  void RefuseLine(const absl::Status& error, const Json& request = Json());
  /// Sends the answers that have gathered.
  void SendAnswers();
  /// Adds the answer to a line to them.
  void AddAnswer();
  void EndExec();

  // ---- connection_follow.cc: changes of a dataset as they come ----
  void BeginFollowing(const Route& route);
  bool AdvanceFollowing();
  /// Makes the next events. On a worker.
  void ProduceEvents();
  /// Sends what was made.
  void TakeEvents();

  // ---- CallTransport ----
  std::string_view Authorization() const override { return head_.authorization; }
  std::string CommonName() const override { return common_name_; }
  std::string Peer() const override { return peer_; }
  std::optional<std::string_view> ExpectedBackend() const override { return std::nullopt; }
  bool WantsMigrationErrors() const override { return false; }
  void Cancel() override { Stop(); }
  void SendOutcome(CallOutcome) override {}  // the text of the error says it

  ConnectionList::Place place_;  // destroyed last
  HttpDoor& door_;
  const std::unique_ptr<ByteStream> stream_;
  const boost::asio::any_io_executor strand_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer look_timer_;
  std::string peer_;
  std::string common_name_;
  State state_ = State::kHandshake;
  bool draining_ = false;
  Pace pace_;  // of the handshake, the head, the body, the answer, or the goodbye

  // The input.
  std::array<char, size_t{16} << 10> piece_{};
  bool reading_ = false;
  bool looking_ = false;
  bool ended_ = false;  // the client sends nothing more
  std::string in_;      // what was read and not consumed, from in_begin_ on
  size_t in_begin_ = 0;

  // The output.
  std::deque<std::shared_ptr<const std::string>> out_;  // the first one from sent_ on
  size_t sent_ = 0;
  size_t out_bytes_ = 0;
  bool writing_ = false;

  // The timer waits until timer_at_, which may be before deadline_.
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> timer_at_;

  // The request.
  std::optional<RequestParser> parser_;
  size_t head_bytes_ = 0;
  size_t requests_ = 0;
  RequestHead head_;
  bool close_after_ = false;
  Parameters parameters_;  // of the request whose body is read
  size_t max_body_ = 0;
  size_t max_values_ = 0;
  std::string body_;
  std::vector<std::shared_ptr<void>> held_;  // for the body, or for a line
  size_t held_bytes_ = 0;
  std::atomic<bool> gone_{false};  // the client is; read by calls
  bool running_ = false;           // a worker, or the strand itself, carries the call out
  std::unique_ptr<JsonCall> call_;

  // Lines.
  std::unique_ptr<Call> exec_;  // identifies the caller of the stream
  std::optional<LineSplitter> lines_;
  std::string line_;
  std::string refusal_;                          // the answer of RefuseLine
  std::string answers_;                          // that were not sent yet
  std::vector<std::shared_ptr<void>> out_held_;  // for answers to lines that were not taken yet
  bool exec_ended_ = false;
  absl::Status exec_error_;  // why no more lines can be read

  // Changes as they come.
  std::unique_ptr<ChangeEvents> follow_;
  ChangeEvents::Made made_ = ChangeEvents::Made::kEnd;
  bool has_followed_ = false;  // the head of the answer was sent
};

}  // namespace kvstore::server
