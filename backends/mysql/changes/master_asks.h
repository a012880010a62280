#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "backends/mysql/changes/log_position.h"
#include "base/mutex.h"
#include "shardmap/shard_range.h"

namespace kvstore::mysql {

/// A master's answer about its log.
struct MasterAnswer {
  absl::Status status = absl::UnavailableError("was not asked");
  uint64_t now_ms = 0;  ///< By the server's clock.
  LogVector end;        ///< All that was acknowledged before now_ms is before it.
  uint32_t domain = 0;  ///< The server's gtid_domain_id.
  /// The server was asked and has not answered yet, for longer than the caller waits; `status` is
  /// UNAVAILABLE.
  bool is_late = false;
};

/// Asks masters about their logs, each in a thread of its own, so that a host that hangs delays nobody who
/// asks about others. Callers that ask about the same host at the same time share an answer. A host that was
/// late is waited for only briefly until it has answered in time again. Thread-safe.
class MasterAsks {
 public:
  /// How long a caller waits for a host,
  static constexpr std::chrono::milliseconds kPatience{250};
  /// and for one that was late when it was last asked.
  static constexpr std::chrono::milliseconds kPatienceWithLate{20};

  /// Asks a host. May wait for as long as the timeouts of connections allow. Called without the limits of any
  /// call, by the host's thread.
  using Ask = std::function<MasterAnswer(const Host&)>;
  /// Whether callers give up on a host that is late, or wait until it answers or their call is over
  /// (CheckCall).
  enum class Patience : uint8_t { kShort, kWhole };

  explicit MasterAsks(Ask ask) : ask_(std::move(ask)) {}
  /// Waits until the hosts that are being asked have answered, or have failed. Nobody may ask any more.
  ~MasterAsks();
  MasterAsks(const MasterAsks&) = delete;
  MasterAsks& operator=(const MasterAsks&) = delete;

  /// Returns what each of the hosts says, in their order. Each has been asked after this call began. One for
  /// which the system gives no thread is UNAVAILABLE.
  std::vector<MasterAnswer> AskAll(std::span<const Host> hosts, Patience patience);

  /// Ends the threads of hosts for which `keep` returns false, except those that are late or being asked.
  void Forget(const std::function<bool(const Host&)>& keep);
  /// Returns how many hosts have a thread.
  size_t threads() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Asked {
    bool IsLate(Clock::time_point now) const {
      return was_late || (begun > done && now - begun_at > kPatience);
    }
    std::thread thread;
    // Asks are counted: so many were wanted, begun, and done.
    uint64_t wanted = 0;
    uint64_t begun = 0;
    uint64_t done = 0;
    MasterAnswer answer;    // of the last one that is done
    bool was_late = false;  // it took longer than kPatience
    Clock::time_point begun_at;
    bool ends = false;  // the thread has nothing more to do
  };

  void Work(const Host& host, Asked& asked);
  /// Returns the answer of the ask of this number, or the next one; waits for it until `deadline`.
  MasterAnswer Await(MutexLock& lock, const Host& host, const Asked& asked, uint64_t number,
                     Patience patience, Clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Ask ask_;
  mutable Mutex mutex_;
  std::condition_variable wanted_;
  std::condition_variable done_;
  std::map<Host, std::shared_ptr<Asked>> hosts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::mysql
