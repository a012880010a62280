#pragma once

#include <atomic>
#include <cstdint>
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
  void CutAtAnswerTo(const std::string& text, bool for_good = false);
  /// Whether that has happened.
  bool HasCut() const;

 private:
  void Accept();
  void Forward(int client);
  /// Passes on what has come; false at the end.
  bool Pass(int from, int to, bool to_server, bool& cut_at_answer);

  const uint16_t target_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<uint32_t> delay_ms_{0};
  mutable std::mutex mutex_;
  bool cut_for_good_ = false;         // guarded by mutex_
  std::string cut_text_;              // guarded by mutex_
  std::vector<int> sockets_;          // open ones; guarded by mutex_
  std::vector<std::thread> threads_;  // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace kvstore::testing
