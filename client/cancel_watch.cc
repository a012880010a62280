#include "client/cancel_watch.h"

#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/mutex.h"

namespace kvstore::client {
namespace {

constexpr std::chrono::milliseconds kInterval{20};

}  // namespace

/// The list of all watches, and the thread that looks at them. Thread-safe.
class Watcher {
 public:
  /// It is never destroyed: its thread may still run when the process ends.
  static Watcher& Get() {
    static Watcher* const watcher = new Watcher;
    return *watcher;
  }

  void Add(CancelWatch& watch) {
    const MutexLock lock(mutex_);
    watch.after_ = first_;
    if (first_ != nullptr) first_->before_ = &watch;
    first_ = &watch;
    // Otherwise the thread sleeps for a moment only, and finds the watch then.
    if (idle_) added_.notify_one();
  }

  /// When it returns, the thread does not use the watch any more.
  void Remove(CancelWatch& watch) {
    const MutexLock lock(mutex_);
    (watch.before_ != nullptr ? watch.before_->after_ : first_) = watch.after_;
    if (watch.after_ != nullptr) watch.after_->before_ = watch.before_;
  }

 private:
  Watcher() {
    std::thread([this] { Run(); }).detach();
  }

  void Run() {
    for (;;) {
      {
        MutexLock lock(mutex_);
        idle_ = true;
        while (first_ == nullptr) lock.Wait(added_);
        idle_ = false;
        for (CancelWatch* watch = first_; watch != nullptr; watch = watch->after_) {
          if (watch->IsOver()) watch->context_.TryCancel();
        }
      }
      std::this_thread::sleep_for(kInterval);
    }
  }

  Mutex mutex_;
  std::condition_variable added_;
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // the thread waits for a watch
  CancelWatch* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

CancelWatch::CancelWatch(grpc::ClientContext& context, const std::atomic<bool>* cancelled,
                         std::optional<Clock::time_point> deadline)
    : context_(context), cancelled_(cancelled), deadline_(deadline) {
  if (IsNeeded()) Watcher::Get().Add(*this);
}

CancelWatch::~CancelWatch() {
  if (IsNeeded()) Watcher::Get().Remove(*this);
}

bool CancelWatch::IsOver() const {
  return (cancelled_ != nullptr && *cancelled_) || (deadline_ && Clock::now() >= *deadline_);
}

}  // namespace kvstore::client
