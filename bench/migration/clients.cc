#include "bench/migration/clients.h"

#include <charconv>
#include <random>
#include <utility>

#include "backend_api/outcome.h"

namespace kvstore::bench {

using testing::History;
using Clock = Timeline::Clock;

Clients::Clients(KVStore& store, std::string dataset, Timeline& timeline, History& history, int threads)
    : store_(store), dataset_(std::move(dataset)), timeline_(timeline), history_(history) {
  for (int t = 0; t < threads; ++t) threads_.emplace_back([this, t] { Run(static_cast<uint64_t>(t)); });
}

void Clients::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Clients::Run(uint64_t seed) {
  std::mt19937_64 random(seed + 1);
  while (!stop_ && !history_.full()) {
    const auto key = static_cast<uint32_t>(random() % kKeys);
    const std::string row = "hot:" + std::to_string(key);
    // Half of them only read, so that held writes do not hold up their reads.
    const uint64_t choice = seed % 2 == 0 ? 0 : random() % 10;
    const auto kind = choice < 5   ? History::Kind::kRead
                      : choice < 9 ? History::Kind::kWrite
                                   : History::Kind::kDelete;
    const uint64_t value = kind == History::Kind::kWrite ? history_.NewValue() : History::kNone;
    const auto begin = Clock::now();
    const size_t operation = history_.Begin(key, kind, value);
    absl::Status status;
    uint64_t found = History::kNone;
    if (kind == History::Kind::kRead) {
      const auto read = store_.GetRow(dataset_, row, {});
      status = read.status();
      if (read.ok() && !read->items.empty()) {
        const std::string& text = read->items[0].cells[0].value;
        std::from_chars(text.data(), text.data() + text.size(), found);
      }
    } else if (kind == History::Kind::kWrite) {
      const std::string text = std::to_string(value);
      const CellWrite cell{"c", text, std::nullopt};
      status = store_.PutRow(dataset_, row, {&cell, 1}, {}).status();
    } else {
      status = store_.DeleteRow(dataset_, row, {});
    }
    if (status.ok()) {
      history_.End(operation, found);
    } else {
      ++errors_;
      if (!IsInDoubt(status)) history_.Fail(operation);
    }
    const auto end = Clock::now();
    timeline_.Add(begin, end, kind != History::Kind::kRead);
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 1000));
  }
}

absl::StatusOr<Report> BenchClients(KVStore& store, const ClientsOptions& options,
                                    const std::function<void()>& wait) {
  if (auto status = store.CreateDataset({.name = options.dataset}); !status.ok()) return status;
  Report report{.workload = "clients", .backend = "as given"};
  DescribeMachine(report);
  Timeline timeline;
  History history(Clients::kKeys, 4'000'000);
  const auto begin = Clock::now();
  uint64_t errors = 0;
  {
    Clients clients(store, options.dataset, timeline, history, options.threads);
    wait();
    clients.Stop();
    errors = clients.errors();
  }
  const auto end = Clock::now();
  report.figures.emplace_back("calls", static_cast<double>(history.size()));
  report.figures.emplace_back("calls that failed", static_cast<double>(errors));
  report.figures.emplace_back("longest write, ms", timeline.LongestMs(begin, end, true));
  report.figures.emplace_back("longest read, ms", timeline.LongestMs(begin, end, false));
  report.figures.emplace_back("p99, us", timeline.Quantile(begin, end, 0.99));
  const auto problem = history.Check();
  if (auto status = store.DropDataset(options.dataset, {}); !status.ok()) return status;
  if (problem) return absl::DataLossError("what the clients were told has no explanation: " + *problem);
  return report;
}

}  // namespace kvstore::bench
