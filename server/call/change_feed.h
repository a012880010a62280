#pragma once

#include <absl/base/thread_annotations.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "router/router.h"
#include "server/call/suspended_calls.h"

namespace kvstore::server {

/// Changes of datasets, for the calls that follow them. Calls that have read everything wait here and occupy
/// no thread: one thread looks for all of them whether something was written. Where that waits for other
/// machines (Capabilities::waits) a thread of its own looks for each dataset, so that one whose machines hang
/// delays no followers of others. Those that wait at the same place get the same page, which was read once.
/// Thread-safe.
class ChangeFeed {
 public:
  using Clock = SuspendedCalls::Clock;
  using Page = std::shared_ptr<const ChangePage>;

  /// draining  Returns whether the server stops: then nothing waits any longer.
  ChangeFeed(Router& router, std::function<bool()> draining);
  /// No call may wait any more.
  ~ChangeFeed();
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  /// Returns a page of changes, perhaps one that was read for another call a moment ago. Arguments and errors
  /// are those of KVStore::ReadChanges.
  absl::StatusOr<Page> Read(const std::string& dataset, const std::string& from);
  /// Has the call retried when there is something to read after the token, or when it is due.
  void Wait(const std::string& dataset, const std::string& token, SuspendedCalls::Suspended call);
  /// Returns how many calls wait.
  size_t waiting() const;
  /// Returns the memory of the pages that are kept for others.
  size_t kept_bytes() const;
  /// Returns how many pages with changes were read, and how often one was given to another call.
  uint64_t read() const;
  uint64_t shared() const;

 private:
  /// A dataset, and a token of it.
  using Place = std::pair<std::string, std::string>;
  struct Kept {
    Page page;
    uint64_t incarnation = 0;  // of the dataset
    size_t bytes = 0;
    Clock::time_point read;
  };

  /// How often it is looked whether something was written.
  static constexpr std::chrono::milliseconds kInterval{10};
  /// After looking it rests for so many times as long, so that it takes at most a fifth of a processor:
  /// followers at many places are told later instead,
  static constexpr int kRests = 4;
  /// but no later than this.
  static constexpr std::chrono::seconds kMaxInterval{1};
  /// A page is so little that other calls do not wait for long behind the one that reads it.
  static constexpr ChangeOptions kPage{.limit = 250, .max_bytes = size_t{256} << 10};
  /// Pages are kept for those who wait at the same place, which ask within this.
  static constexpr std::chrono::seconds kKept{1};
  static constexpr size_t kMaxKeptBytes = size_t{16} << 20;

  /// So many datasets on other machines are looked at at a time, at most. If all of them hang, the others
  /// wait.
  static constexpr size_t kMaxLookers = 64;

  /// A dataset on other machines that is followed.
  struct Remote {
    bool is_looked_at = false;  // or waits for a looker
    Clock::time_point next;     // when it is to be looked at again
  };

  void Watch();
  /// Looks at datasets on other machines.
  void Look();
  bool HasNews(const Place& place);
  /// Looks at these places, and has the calls retried for which there is something, or that are due.
  /// Returns how long it took.
  Clock::duration LookAt(std::vector<Place> places);
  /// Has those datasets on other machines looked at whose time it is. Removes their places from `places`.
  void HandOver(std::vector<Place>& places) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// How long to rest after a look that took so long.
  static Clock::duration RestAfter(Clock::duration took) {
    return std::clamp<Clock::duration>(took * kRests, kInterval, kMaxInterval);
  }
  /// Removes and returns the calls that wait at one of these places, or are due.
  std::vector<SuspendedCalls::Suspended> Dequeue(const std::vector<Place>& places, bool all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const Place& place, Kept kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Forgets the pages that nobody asks for any more.
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Router& router_;
  const std::function<bool()> draining_;
  mutable Mutex mutex_;
  std::condition_variable wanted_;
  std::condition_variable stopped_;
  std::map<Place, std::vector<SuspendedCalls::Suspended>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<Place, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  std::deque<Place> order_ ABSL_GUARDED_BY(mutex_);  // of kept_, those that were read first before others
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t read_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t shared_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Remote> remote_ ABSL_GUARDED_BY(mutex_);  // by dataset
  std::deque<std::string> to_look_at_ ABSL_GUARDED_BY(mutex_);    // of remote_
  size_t idle_lookers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::condition_variable look_;
  std::vector<std::thread> lookers_;  // of thread_ alone
  std::thread thread_;
};

/// Finds out what a call that follows a dataset is told next. Externally synchronised.
class ChangeFollower {
 public:
  /// While nothing is written, it is told once in so long until when all was told.
  static constexpr std::chrono::seconds kTellInterval{1};

  /// feed  Must outlive this.
  ChangeFollower(ChangeFeed& feed, std::string dataset, std::string from)
      : feed_(feed), dataset_(std::move(dataset)), token_(std::move(from)) {}

  /// Returns the next page; null: there is none yet, and ChangeFeed::Wait waits for one after token().
  absl::StatusOr<ChangeFeed::Page> Next();
  const std::string& token() const { return token_; }

 private:
  ChangeFeed& feed_;
  const std::string dataset_;
  std::string token_;
  ChangeFeed::Clock::time_point told_;
};

/// Returns the error of a producer of messages that has none until something is written after a token.
absl::Status NothingYetError(const std::string& token);
/// Returns that token; nothing for any other status.
std::optional<std::string> NothingYetBehind(const absl::Status& status);

}  // namespace kvstore::server
