#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// A proxy between clients and a server on the loopback interface, which injects faults into their
/// connections. Thread-safe.
class TcpProxy {
 public:
  /// Forwards connections to the port `target`.
  explicit TcpProxy(uint16_t target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  uint16_t port() const { return port_; }
  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Closes all connections, and from now on each new one at once.
  void Cut();
  /// Lets new connections through again.
  void Mend() { cut_ = false; }
  /// From now on connections, new ones too, stay open but transfer nothing, until Flow.
  void Stall() { stalled_ = true; }
  void Flow() { stalled_ = false; }
  /// Makes the connections that are open transfer nothing any more, as a firewall that has forgotten them;
  /// new ones are forwarded.
  void Forget() { ++forgotten_; }
  /// Delays each piece of data by so many milliseconds.
  void Delay(uint32_t ms) { delay_ms_ = ms; }
  /// Waits for the next time that a client sends something that contains `text`, forwards it, and closes the
  /// connection when the server answers, without passing on the answer. Happens once.
  ///
  /// for_good   Whether new connections are closed from then on, too.
  /// meanwhile  Is called before the client notices. May be null.
  void CutAtAnswerTo(const std::string& text, bool for_good = false,
                     std::function<void()> meanwhile = nullptr);
  /// Does the same, but closes the connection before the server gets what contains `text`.
  void CutBefore(const std::string& text, std::function<void()> meanwhile = nullptr);
  /// Replaces, once, the server's answer to something that contains `text` by `answer`.
  void ReplaceAnswerTo(const std::string& text, const std::string& answer);
  /// Returns what clients have sent since an answer was replaced.
  std::string SaidSince() const;
  /// Whether the fault that was set last has happened.
  bool HasCut() const;

 private:
  enum class Fault : uint8_t { kNone, kCutAtAnswer, kCutBefore, kReplaceAnswer };
  /// A fault that is injected where a client sends a certain text.
  struct Trap {
    Fault fault = Fault::kNone;
    bool for_good = false;
    std::string answer;
    std::function<void()> meanwhile;
  };

  void Set(const std::string& text, Trap trap);
  void Accept();
  void Forward(int client);
  /// Passes on what has arrived; returns false if the connection is to be closed. `sprung` is the trap that
  /// the connection has met.
  bool Pass(int from, int to, bool to_server, Trap& sprung);

  const uint16_t target_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<uint64_t> forgotten_{0};  // how often connections were forgotten
  std::atomic<uint32_t> delay_ms_{0};
  mutable Mutex mutex_;
  std::string trap_text_ ABSL_GUARDED_BY(mutex_);
  Trap trap_ ABSL_GUARDED_BY(mutex_);
  bool replaced_ ABSL_GUARDED_BY(mutex_) = false;  // whether an answer was replaced
  std::string said_since_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);  // those that are open
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace kvstore::testing
