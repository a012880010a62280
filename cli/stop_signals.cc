#include "cli/stop_signals.h"

#include <csignal>
#include <utility>

namespace kvstore::cli {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

StopSignals::StopSignals(std::function<void(int)> on_first) {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this, on_first = std::move(on_first)] { Receive(on_first); });
}

StopSignals::~StopSignals() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  // Ends the wait if no signal has come.
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void StopSignals::Receive(const std::function<void(int)>& on_first) {
  const sigset_t signals = Signals();
  int signal = 0;
  sigwait(&signals, &signal);
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
  }
  on_first(signal);
  {
    const MutexLock lock(mutex_);
    signal_ = signal;
  }
  received_.notify_all();
}

int StopSignals::Wait() {
  MutexLock lock(mutex_);
  while (signal_ == 0) lock.Wait(received_);
  return signal_;
}

}  // namespace kvstore::cli
