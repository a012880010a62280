#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kvstore::testing {

/// Stands between a client and a server on the loopback interface, and breaks what is between them.
/// Thread-safe.
class TcpProxy {
 public:
  /// Forwards connections to `target`, a port.
  explicit TcpProxy(uint16_t target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Ends all connections, and each new one at once.
  void Cut();
  /// Lets new connections through again.
  void Mend() { cut_ = false; }
  /// Connections stay open and carry nothing, new ones too, until Flow.
  void Stall() { stalled_ = true; }
  void Flow() { stalled_ = false; }
  /// Holds back each piece of data for so long.
  void Delay(uint32_t ms) { delay_ms_ = ms; }
  /// Ends, once, the connection on which a client next sends something with `text` in it, when the server has
  /// answered that, and does not pass on the answer. With `for_good`, new connections are ended too.
  ///
  /// meanwhile  is called before the client notices. May be null.
  void CutAtAnswerTo(const std::string& text, bool for_good = false,
                     std::function<void()> meanwhile = nullptr);
  /// The same, but the server is cut off before it gets that.
  void CutBefore(const std::string& text, std::function<void()> meanwhile = nullptr);
  /// Once, the server's answer to something with `text` in it is replaced by `answer`.
  void ReplaceAnswerTo(const std::string& text, const std::string& answer);
  /// What clients have sent since an answer was replaced.
  std::string SaidSince() const;
  /// Whether that has happened.
  bool HasCut() const;

 private:
  enum class Fault : uint8_t { kNone, kCutAtAnswer, kCutBefore, kReplaceAnswer };
  /// What is done where a text is seen.
  struct Trap {
    Fault fault = Fault::kNone;
    bool for_good = false;
    std::string answer;
    std::function<void()> meanwhile;
  };

  void Set(const std::string& text, Trap trap);
  void Accept();
  void Forward(int client);
  /// Passes on what has come; false at the end. `sprung` is the trap that the connection is in.
  bool Pass(int from, int to, bool to_server, Trap& sprung);

  const uint16_t target_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<uint32_t> delay_ms_{0};
  mutable std::mutex mutex_;
  std::string trap_text_;             // guarded by mutex_
  Trap trap_;                         // guarded by mutex_
  bool replaced_ = false;             // an answer; guarded by mutex_
  std::string said_since_;            // guarded by mutex_
  std::vector<int> sockets_;          // open ones; guarded by mutex_
  std::vector<std::thread> threads_;  // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace kvstore::testing
