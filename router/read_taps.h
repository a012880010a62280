#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/snapshot.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// Is told which units of a dataset callers have read. Thread-safe.
class ReadTap {
 public:
  virtual ~ReadTap() = default;
  /// Takes the keys (backend_api/unit_key.h) of units that a read has returned, or has asked for. Called by
  /// the caller's thread, which it must not hold up: it drops what it cannot take at once.
  virtual void Offer(std::vector<std::string> units) = 0;
};

/// Tells taps of a share of the reads that this process makes, each of one dataset. Where there is no tap,
/// which is nearly always, a read costs a load from memory more. Thread-safe.
class ReadTaps {
 public:
  /// How many reads in kAll are told.
  static constexpr uint32_t kAll = 1'000'000;
  /// At most this many units of a read are told.
  static constexpr size_t kMostUnits = 20;

  ReadTaps();
  /// Tells the tap of reads of the dataset from now on, in place of an earlier tap.
  ///
  /// share  of kAll; each read is chosen at random.
  void Open(std::string_view dataset, uint32_t share, std::shared_ptr<ReadTap> tap);
  /// Tells of no more reads. A read that was chosen before may still be told.
  void Close(std::string_view dataset);

  /// Called after a read has succeeded.
  void OnRow(std::string_view dataset, std::string_view row, const ReadOptions& options,
             const std::vector<Item>& items) const {
    if (any_.load(std::memory_order_relaxed)) [[unlikely]]
      TellRow(dataset, row, options, items);
  }
  void OnObject(std::string_view dataset, uint64_t id) const {
    if (any_.load(std::memory_order_relaxed)) [[unlikely]]
      TellObject(dataset, id);
  }
  void OnMapping(std::string_view dataset, uint64_t from, const std::vector<MappingEntry>& entries) const {
    if (any_.load(std::memory_order_relaxed)) [[unlikely]]
      TellMapping(dataset, from, entries);
  }

 private:
  struct Opened {
    uint32_t share = 0;
    std::shared_ptr<ReadTap> tap;
  };
  using Taps = std::map<std::string, Opened, std::less<>>;

  /// Returns the tap that this read of the dataset is to be told to; null: none.
  std::shared_ptr<ReadTap> Choose(std::string_view dataset) const;
  void TellRow(std::string_view dataset, std::string_view row, const ReadOptions& options,
               const std::vector<Item>& items) const;
  void TellObject(std::string_view dataset, uint64_t id) const;
  void TellMapping(std::string_view dataset, uint64_t from, const std::vector<MappingEntry>& entries) const;
  /// Puts other taps in force.
  void Store(Taps taps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;  // serialises changes
  std::atomic<bool> any_{false};
  Snapshot<Taps> taps_;
};

}  // namespace kvstore
