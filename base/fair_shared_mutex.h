#pragma once

#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

namespace kvstore {

/// A shared mutex by which neither kind of holder can keep out the other for ever.
///
/// The std::shared_mutex of libstdc++ lets in everyone who wants it shared while it is held shared, so two
/// threads that take it in turn, each before the other has released it, keep out exclusive holders for ever.
/// The other kind of lock that glibc has prefers exclusive holders, two of which would keep out the shared
/// ones in the same way. This one is of that kind, and admits a single exclusive holder at a time to it: who
/// waits for it exclusively holds up all who come later, and who has waited for it shared is let in as soon
/// as the exclusive holder of that moment releases it.
///
/// A thread that holds it must not wait for it again, and one that holds it shared not even shared: another
/// one may wait for it exclusively meanwhile, and then both wait for ever. Has the functions of
/// std::shared_mutex, for std::shared_lock and std::unique_lock. Clang's thread-safety analysis does not know
/// it.
class FairSharedMutex {
 public:
  FairSharedMutex() = default;
  ~FairSharedMutex() { ::pthread_rwlock_destroy(&lock_); }
  FairSharedMutex(const FairSharedMutex&) = delete;
  FairSharedMutex& operator=(const FairSharedMutex&) = delete;

  void lock() {
    exclusive_.lock();
    if (::pthread_rwlock_wrlock(&lock_) != 0) std::abort();  // the lock is broken
  }
  bool try_lock() {
    if (!exclusive_.try_lock()) return false;
    if (::pthread_rwlock_trywrlock(&lock_) == 0) return true;
    exclusive_.unlock();
    return false;
  }
  void unlock() {
    // lock_ is released first, while no other thread can wait for it exclusively: then glibc lets in those
    // who wait for it shared.
    ::pthread_rwlock_unlock(&lock_);
    exclusive_.unlock();
  }

  void lock_shared() {
    int error = 0;
    // EAGAIN: as many threads hold it shared as glibc can count.
    while ((error = ::pthread_rwlock_rdlock(&lock_)) == EAGAIN) {
    }
    if (error != 0) std::abort();  // this thread holds it exclusively
  }
  /// Also fails while another thread waits for it exclusively.
  bool try_lock_shared() { return ::pthread_rwlock_tryrdlock(&lock_) == 0; }
  void unlock_shared() { ::pthread_rwlock_unlock(&lock_); }

 private:
  std::mutex exclusive_;  // held by the thread that holds lock_ exclusively, or waits for it
  pthread_rwlock_t lock_ = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
};

}  // namespace kvstore
