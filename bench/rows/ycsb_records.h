#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/distribution.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

/// The records of YCSB in a dataset, ten fields of 100 bytes each, and the calls of its workloads on them
/// (see ycsb.h). Keys are hashed, as in YCSB. A call that fails ends the benchmark. Calls of one thread
/// number are externally synchronised; other calls may run in parallel.
class YcsbRecords {
 public:
  struct Options {
    std::string dataset;
    uint64_t records = 0;  ///< How many there are at the beginning.
    int threads = 1;
    /// Whether Delete and DeleteOldest are called, too: then a read may find only some fields, or none.
    bool deletes = false;
  };

  YcsbRecords(KVStore& store, Options options);

  static bool IsWorkload(char workload);

  /// Writes the records.
  void Load();

  /// Executes one operation of a workload and returns the name of its kind.
  const char* Execute(char workload, int thread);
  /// Deletes a record, or restores one that this thread has deleted, so that few are missing at any time.
  const char* Delete(int thread);
  /// Deletes the oldest record if more were inserted than deleted by this function; else inserts one.
  const char* DeleteOldest(int thread);

 private:
  struct Mix;

  /// The state of one thread.
  struct Thread {
    std::mt19937_64 random;
    std::string value;
    std::deque<uint64_t> deleted;

    /// Returns printable bytes, as YCSB uses them.
    std::string_view NewValue();
  };

  static const Mix* FindMix(char workload);
  uint64_t Choose(bool latest, Thread& thread) const;
  void Read(uint64_t record);
  void Update(uint64_t record, Thread& thread);
  void Put(uint64_t record, Thread& thread);
  void Insert(Thread& thread);
  void Scan(uint64_t record, uint64_t rows);

  KVStore& store_;
  const Options options_;
  std::atomic<uint64_t> inserted_{0};
  std::atomic<uint64_t> records_;    // all that were ever inserted
  std::atomic<uint64_t> oldest_{0};  // all before this one were deleted
  const Zipfian zipfian_;            // of the records that were loaded
  std::vector<Thread> threads_;
};

}  // namespace kvstore::bench
