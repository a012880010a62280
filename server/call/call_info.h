#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvstore::server {

/// The door that a call came by, that is its protocol.
enum class Door : uint8_t { kGrpc, kHttp, kResp };

/// How many doors there are.
inline constexpr size_t kDoorCount = 3;

/// Returns the name of a door in metrics and in the log.
constexpr std::string_view Name(Door door) {
  switch (door) {
    case Door::kGrpc:
      return "grpc";
    case Door::kHttp:
      return "http";
    case Door::kResp:
      return "resp";
  }
  return "";
}

/// The effect of a failed call, which tells its client whether it may retry. kvstore.proto describes each
/// under "kvstore-outcome".
enum class CallOutcome : uint8_t {
  kFailed,   ///< None of the following.
  kRefused,  ///< The call was turned away before anything was done. It may be retried as it is.
  kInDoubt,  ///< A write may or may not have happened.
  kMoved,    ///< Nothing was done, because the dataset migrates or another server serves it.
};

/// The protocol's side of a call: what few calls need, so that a call asks for it when it does. A stream that
/// carries many calls is one transport for all of them.
///
/// The implementation must outlive the calls that have it. Peer and Cancel are called on any thread; the
/// others by one thread at a time. server/grpc/grpc_transport.h is the one for gRPC.
class CallTransport {
 public:
  virtual ~CallTransport() = default;

  /// Returns the credentials that came with the call, "Bearer TOKEN"; empty if none did.
  virtual std::string_view Authorization() const = 0;
  /// Returns the common name of the client's certificate, which the TLS handshake has verified; empty if the
  /// client presented none.
  virtual std::string CommonName() const = 0;
  /// Returns the client's address as gRPC writes it: "ipv4:127.0.0.1:40000".
  virtual std::string Peer() const = 0;
  /// Returns the backend that has the dataset by what another server of the same catalog knows; nothing if
  /// the call does not come from one.
  virtual std::optional<std::string_view> ExpectedBackend() const = 0;
  /// Returns whether the client wants an error at once where the dataset migrates, because it waits itself.
  virtual bool WantsMigrationErrors() const = 0;

  /// Ends the call from the server's side; what it does then, it does on other threads.
  virtual void Cancel() = 0;
  /// Sends this to the client with the error that the call ends with. Called at most once, before that.
  virtual void SendOutcome(CallOutcome outcome) = 0;
};

/// Describes a call when it arrives. Calls know no protocol: each protocol fills this in for its own.
struct CallInfo {
  using Clock = std::chrono::steady_clock;

  CallTransport& transport;
  Door door = Door::kGrpc;
  Clock::time_point begun = Clock::now();
  /// When the client gives up; nothing: only the server's own limit applies.
  std::optional<Clock::time_point> deadline = std::nullopt;
  /// Becomes true when the client is gone; null: Call::MarkCancelled says so.
  const std::atomic<bool>* cancelled = nullptr;
  /// The client wants an error at once where the dataset migrates. CallTransport::WantsMigrationErrors says
  /// so for all calls of a stream.
  bool wants_migration_errors = false;
  /// The call came with others over one stream: its outcome goes into its answer, not to the transport.
  bool is_part_of_stream = false;
};

}  // namespace kvstore::server
