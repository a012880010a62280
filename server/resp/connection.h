#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/call/call_info.h"
#include "server/resp/channel.h"
#include "server/resp/commands/session.h"
#include "server/resp/environment.h"
#include "server/resp/protocol/decoder.h"
#include "server/resp/run.h"
#include "server/resp/turns.h"
#include "server/resp/writes.h"

namespace kvstore::server::resp {

/// A connection of the Redis protocol: decodes commands, carries them out one after the other, and sends
/// their answers in the same order.
///
/// It lives on one thread, its loop. A command that does not wait is carried out there; puts together with
/// those that other connections of the loop have sent at the same time. Everything else is carried out by
/// workers, and nothing more is decoded, or read, until that is done: so a client that sends more than it
/// gets answers for waits itself. All methods are called on the loop, unless they say otherwise.
class Connection final : public std::enable_shared_from_this<Connection>,
                         public PutMember,
                         public TurnTaker,
                         public ChannelOwner,
                         private Session,
                         private CallTransport {
 public:
  using Clock = std::chrono::steady_clock;

  /// peer    the client's address, as in CallTransport.
  /// closed  called when the connection is closed, which may destroy it.
  Connection(const Environment& environment, boost::asio::io_context& loop, PutGroups& puts, Turns& turns,
             std::unique_ptr<Channel> channel, std::string peer, std::function<void(Connection&)> closed);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  /// Closes the connection if its client has not done in time what it should. To be called now and then.
  void CheckTime(Clock::time_point now);
  /// Returns since when nobody is known over the connection; nothing if somebody is.
  std::optional<Clock::time_point> StrangerSince() const;
  /// The server stops: answers what has arrived, and closes. Closes at once if the handshake has not ended.
  void Drain();
  /// Returns how many bytes its buffers take, of commands and of answers.
  size_t memory() const { return decoder_.memory() + out_.capacity() + sending_.capacity(); }
  /// Closes at once; a command that is carried out by a worker is cancelled.
  void Close();
  /// Closes because of what the client has done, or has not done in time.
  void Cut();

 private:
  // PutMember
  const void* caller() const override { return counted_for_; }
  const Requests& puts() override { return run_.requests(); }
  void PutsDone(Clock::duration took) override;

  // TurnTaker
  void TakeTurn() override;

  // ChannelOwner
  void OnOpened(const boost::system::error_code& error) override;
  void OnRead(const boost::system::error_code& error, size_t bytes) override;
  void OnWritten(const boost::system::error_code& error, size_t bytes) override;
  void OnEnded() override { Close(); }

  // Session
  absl::Status Authenticate(std::string_view user, std::string_view token) override;
  bool is_known() const override { return known_; }
  Version version() const override { return version_; }
  void SetVersion(Version version) override { version_ = version; }
  uint64_t id() const override { return id_; }
  const std::string& name() const override { return name_; }
  void SetName(std::string_view name) override { name_ = name; }
  void SetLibrary(std::string_view what, std::string_view value) override;
  std::string Describe() const override;
  std::string DescribeServer() const override;
  void Quit() override { ends_ = true; }

  // CallTransport; Peer and Cancel on any thread.
  std::string_view Authorization() const override { return authorization_; }
  std::string CommonName() const override { return common_name_; }
  std::string Peer() const override { return peer_; }
  std::optional<std::string_view> ExpectedBackend() const override { return std::nullopt; }
  bool WantsMigrationErrors() const override { return false; }
  void Cancel() override;
  void SendOutcome(CallOutcome) override {}

  /// Takes or loses the caller's identity.
  void BecomeKnown(bool known);
  /// Counts this as a connection of this caller, and no longer as one of another; null: of nobody. An error
  /// if the caller has as many as it may have: nothing has changed then.
  absl::Status CountFor(CallerShare* caller);
  CallInfo Info();

  /// Decodes and carries out what has arrived, as far as possible, sends the answers, and reads more; or
  /// waits for the caller's turn.
  void Process();
  void CarryOutWhatArrived(Clock::time_point now);
  /// Returns how many connections the caller has, where callers are told apart.
  size_t Connections() const;
  /// Returns how long it may keep the loop from others.
  Clock::duration Turn(Clock::time_point now) const;
  /// Decodes a command into next_; returns false if none is there.
  bool Decode();
  /// Finds out what to do with next_, and has it admitted. Returns false if it has to wait for that.
  bool BeginNext();
  void Examine(Request& request);
  /// Goes on after a moment, when there may be room for next_.
  void WaitForRoom();
  /// Answers a command at once, or begins a run with it.
  void Handle(std::unique_ptr<Request> request);
  /// Lets other connections of the loop have their turn, and goes on then.
  void Yield();
  /// Shows the commands of the run among the open calls.
  void Track();
  /// Has the run carried out. Nothing else happens until it is done.
  void Launch();
  /// Carries out the run on a worker.
  static void WorkOnRun(std::shared_ptr<Connection> self);
  /// Has what is left of the run tried again later, on a worker.
  static void Suspend(std::shared_ptr<Connection> self);
  void RunDone();

  void Read();
  /// Sends what is ready. Sends it at once if that is possible.
  void Flush();
  /// Counts the memory of answers that cannot be sent before others were taken.
  void HoldWaiting();
  /// Closes, or ends in order, if that is what is to be done when everything was answered.
  void EndIfDone();
  bool IsBacklogged() const;
  /// Counts the memory that the decoder needs next; returns false if the server has no room for it.
  bool ReserveInput();
  /// Takes no more commands, because what arrives cannot be kept, or is none: what has arrived is forgotten.
  void EndInput();
  /// Counts a call of somebody who is not known, and logs it.
  void CountStranger(const absl::Status& error);

  /// Counts this among the open connections until everything else is destroyed.
  struct Counted {
    explicit Counted(Figures& of) : figures(of) {
      figures.connections.fetch_add(1, std::memory_order_relaxed);
    }
    ~Counted() { figures.connections.fetch_sub(1, std::memory_order_release); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    Figures& figures;
  };

  const Counted counted_;
  const Environment environment_;
  boost::asio::io_context& loop_;
  PutGroups& put_groups_;
  Turns& turns_;
  const std::unique_ptr<Channel> channel_;
  const std::string peer_;
  const std::function<void(Connection&)> closed_callback_;
  const uint64_t id_;

  // The caller.
  std::string authorization_;
  std::string common_name_;
  CommandCall session_;
  CallerShare* counted_for_ = nullptr;
  bool known_ = false;
  size_t stranger_bytes_ = 0;

  Version version_ = Version::kResp2;
  std::string name_;
  std::string library_;
  std::string library_version_;

  Decoder decoder_;
  std::shared_ptr<void> reserved_;  // counts what decoder_ takes beyond what every connection may have
  size_t reserved_bytes_ = 0;
  std::unique_ptr<Request> next_;   // decoded, and not carried out
  std::unique_ptr<Request> spare_;  // for the next one
  Run run_;
  std::string out_;  // answers that are not being sent
  std::string sending_;
  size_t sent_ = 0;                     // of sending_
  std::shared_ptr<void> held_;          // counts sending_
  std::shared_ptr<void> held_waiting_;  // counts out_, while it waits for sending_
  size_t held_waiting_bytes_ = 0;

  bool opened_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool busy_ = false;      // run_ is carried out elsewhere, and must not be touched
  bool has_rest_ = false;  // run_ was carried out in part
  bool yielded_ = false;   // waits for its turn
  bool ended_in_ = false;  // the client sends nothing more
  bool ends_ = false;      // no more commands are taken
  bool ending_ = false;    // the end is being sent
  bool draining_ = false;
  bool closed_ = false;
  std::atomic<bool> cancelled_{false};

  boost::asio::steady_timer timer_;  // of WaitForRoom
  std::optional<Clock::time_point> waits_since_;
  Clock::time_point connected_ = Clock::now();
  Clock::time_point stranger_since_ = connected_;
  Clock::time_point last_command_ = connected_;
  Clock::time_point inside_since_ = connected_;  // when the command began that has arrived in part
  Clock::time_point write_progress_ = connected_;
  size_t written_since_ = 0;  // bytes, since write_progress_
  Clock::time_point ending_since_ = connected_;
  Clock::time_point last_identified_ = connected_;
};

}  // namespace kvstore::server::resp
