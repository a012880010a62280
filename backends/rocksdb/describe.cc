#include "backends/rocksdb/describe.h"

#include <rocksdb/db.h>
#include <rocksdb/statistics.h>

#include <array>

namespace kvstore::rocks {
namespace {

struct Ticker {
  rocksdb::Tickers ticker;
  const char* name;
  const char* help;
};

constexpr std::array<Ticker, 12> kTickers = {{
    {rocksdb::BLOCK_CACHE_HIT, "kvstore_rocksdb_block_cache_hits_total", "Blocks found in the cache"},
    {rocksdb::BLOCK_CACHE_MISS, "kvstore_rocksdb_block_cache_misses_total",
     "Blocks read from files or the system's cache"},
    {rocksdb::ROW_CACHE_HIT, "kvstore_rocksdb_answers_found_total", "Reads of rows whose answer was kept"},
    {rocksdb::ROW_CACHE_MISS, "kvstore_rocksdb_answers_missed_total",
     "Reads of rows that no kept answer could serve"},
    {rocksdb::BLOOM_FILTER_PREFIX_USEFUL, "kvstore_rocksdb_bloom_useful_total",
     "Reads of files that bloom filters have avoided"},
    {rocksdb::BYTES_WRITTEN, "kvstore_rocksdb_written_bytes_total", "Keys and values written"},
    {rocksdb::WAL_FILE_BYTES, "kvstore_rocksdb_log_bytes_total", "Bytes written to the write-ahead log"},
    {rocksdb::WAL_FILE_SYNCED, "kvstore_rocksdb_log_syncs_total", "Times that the log was forced to disk"},
    {rocksdb::FLUSH_WRITE_BYTES, "kvstore_rocksdb_flush_bytes_total", "Bytes written by flushes"},
    {rocksdb::COMPACT_READ_BYTES, "kvstore_rocksdb_compaction_read_bytes_total", "Bytes read by compactions"},
    {rocksdb::COMPACT_WRITE_BYTES, "kvstore_rocksdb_compaction_written_bytes_total",
     "Bytes written by compactions"},
    {rocksdb::STALL_MICROS, "kvstore_rocksdb_stall_microseconds_total",
     "Time that writes waited for flushes and compactions"},
}};

struct Property {
  const std::string& property;
  const char* name;
  const char* help;
};

}  // namespace

void Describe(Engine& engine, MetricsSink& sink) {
  using Properties = rocksdb::DB::Properties;
  for (const Ticker& ticker : kTickers) {
    sink.Counter(ticker.name, ticker.help, {},
                 static_cast<double>(engine.statistics().getTickerCount(ticker.ticker)));
  }
  const std::array<Property, 6> properties = {{
      {Properties::kCurSizeAllMemTables, "kvstore_rocksdb_memtable_bytes",
       "Writes in memory that are not in files yet"},
      {Properties::kTotalSstFilesSize, "kvstore_rocksdb_file_bytes", "Size of all files with data"},
      {Properties::kEstimatePendingCompactionBytes, "kvstore_rocksdb_pending_compaction_bytes",
       "Bytes that compactions have yet to rewrite"},
      {Properties::kEstimateTableReadersMem, "kvstore_rocksdb_reader_bytes",
       "Memory for indexes and filters outside of the cache"},
      {Properties::kNumSnapshots, "kvstore_rocksdb_snapshots", "Open snapshots, each of which pins old data"},
      {Properties::kBackgroundErrors, "kvstore_rocksdb_background_errors",
       "Flushes and compactions that failed"},
  }};
  for (const Property& property : properties) {
    uint64_t value = 0;
    engine.db().GetAggregatedIntProperty(property.property, &value);
    sink.Gauge(property.name, property.help, {}, static_cast<double>(value));
  }
  uint64_t running = 0;
  engine.db().GetIntProperty(Properties::kNumRunningCompactions, &running);
  sink.Gauge("kvstore_rocksdb_running_compactions", "Compactions that run now", {},
             static_cast<double>(running));
  uint64_t stopped = 0;
  engine.db().GetIntProperty(Properties::kIsWriteStopped, &stopped);
  sink.Gauge("kvstore_rocksdb_write_stopped", "1 while writes wait until compactions have caught up, else 0",
             {}, static_cast<double>(stopped));
  sink.Gauge("kvstore_rocksdb_wal_bytes", "Write-ahead logs, which a restart has to replay", {},
             static_cast<double>(engine.Logs().bytes));
  sink.Gauge("kvstore_rocksdb_block_cache_bytes", "Blocks and answers in the cache", {},
             static_cast<double>(engine.CachedBytes()));
}

}  // namespace kvstore::rocks
