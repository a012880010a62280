#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace kvstore::server::resp {

/// Whoever works on a loop for a caller: a connection.
class TurnTaker {
 public:
  virtual ~TurnTaker() = default;
  /// Its turn has come.
  virtual void TakeTurn() = 0;
};

/// Divides the time of a loop between callers, so that one who sends more than the loop can carry out, over
/// however many connections, leaves the others their share. A caller that has used less than others is never
/// kept waiting; one that has used more waits, and goes on whenever the others have nothing to do. While a
/// caller has the loop alone nothing changes. All calls are made on the loop.
class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  /// A turn is no longer than this while several callers use the loop.
  static constexpr std::chrono::microseconds kSharedTurn{50};

  /// now  Returns the time.
  explicit Turns(boost::asio::io_context& loop, std::function<Clock::time_point()> now = Clock::now)
      : loop_(loop), now_(std::move(now)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Returns whether this caller's work may be done now. If not, Wait.
  ///
  /// caller  Tells callers apart; null: everybody who is not known.
  bool MayBegin(const void* caller, Clock::time_point now);
  /// Returns whether other callers have used the loop lately.
  bool IsShared(Clock::time_point now) const { return now - changed_ < kLately; }
  /// Counts time that the loop has worked for a caller until now, if others use it, too.
  void Count(const void* caller, Duration used, Clock::time_point now);
  /// Has TakeTurn called when the caller's turn comes, after what waits for this caller already.
  void Wait(const void* caller, std::shared_ptr<TurnTaker> taker);

 private:
  /// Whoever has waited for longer comes before all others, so that callers who come and go cannot keep it
  /// waiting.
  static constexpr std::chrono::milliseconds kMostWait{100};
  /// A caller counts as one who uses the loop for so long after its last work.
  static constexpr std::chrono::milliseconds kLately{20};
  /// By so much more than the others a caller may have used before it waits.
  static constexpr std::chrono::microseconds kAhead{500};
  /// A caller who was idle has used less than others by no more than this.
  static constexpr std::chrono::milliseconds kBehind{5};
  /// With more callers those are forgotten that do not use the loop.
  static constexpr size_t kManyCallers = 256;

  struct Caller {
    Duration used{0};
    Clock::time_point last;  // when it worked, or wanted to
    struct Waiting {
      std::shared_ptr<TurnTaker> taker;
      Clock::time_point since;
    };
    std::deque<Waiting> waiting;

    bool IsOverdue(Clock::time_point now) const {
      return !waiting.empty() && now - waiting.front().since > kMostWait;
    }
  };

  Caller& Find(const void* caller, Clock::time_point now);
  /// Returns the caller who is overdue for longest, else who waits and has used the least; null: none waits.
  Caller* Next(Clock::time_point now);
  void Schedule();
  void Run();

  boost::asio::io_context& loop_;
  const std::function<Clock::time_point()> now_;
  std::unordered_map<const void*, Caller> callers_;
  Duration most_used_{0};
  const void* latest_ = nullptr;
  Clock::time_point changed_{};  // when latest_ became another one
  size_t waiting_ = 0;           // takers, of all callers
  bool is_turn_ = false;         // TakeTurn is being called
  bool scheduled_ = false;
};

}  // namespace kvstore::server::resp
