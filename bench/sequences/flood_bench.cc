#include "bench/sequences/flood_bench.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "bench/harness/report.h"
#include "kvstore_api/connect.h"

namespace kvstore::bench {
namespace {

constexpr char kFloodDataset[] = "kv_bench_flood";
constexpr uint64_t kFloodRows = 10'000;
constexpr size_t kFloodValueBytes = 100;
constexpr char kFlood[] = "flood";
constexpr char kOthers[] = "others";

std::string FloodRow(uint64_t i) { return fmt::format("row:{:06}", i % kFloodRows); }

absl::Status LoadRows(KVStore& store) {
  if (auto status = store.CreateDataset({.name = kFloodDataset}); !status.ok()) return status;
  const std::string value(kFloodValueBytes, 'v');
  const CellWrite cell{"c", value, 1};
  for (uint64_t i = 0; i < kFloodRows; ++i) {
    if (auto put = store.PutRow(kFloodDataset, FloodRow(i), {&cell, 1}, {}); !put.ok()) return put.status();
  }
  return absl::OkStatus();
}

/// Returns what one kind of calls did in a round.
LoadRound Part(const LoadRound& round, const char* kind, double seconds) {
  const auto found = round.latencies.find(kind);
  if (found == round.latencies.end()) return {};
  // With a rate the last calls may end long after the round.
  if (round.latencies.size() == 1) return round;
  return {.ops_s = static_cast<double>(found->second.count()) / seconds,
          .latencies = {{kind, found->second}}};
}

/// The rounds of one caller: with equal callers, and with another one that floods the server.
struct FloodRounds {
  std::vector<LoadRound> equal;
  std::vector<LoadRound> flooded;

  std::vector<LoadRound>& Of(bool is_flooded) { return is_flooded ? flooded : equal; }
  FloodResult::Caller ToCaller() const { return {.equal = ToJson(equal), .flooded = ToJson(flooded)}; }
};

const char* ReadOne(KVStore& store, uint64_t i, const char* kind) {
  Check(store.GetRow(kFloodDataset, FloodRow(i), {}).status());
  return kind;
}

}  // namespace

// ---- a flood by another process ----

// The process is asked by lines of JSON, and answers each with one.

absl::StatusOr<FloodingProcess> FloodingProcess::Start(const std::string& server, const std::string& token) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  auto child = Child::StartAnswering({"chrt", "--idle", "0", program, "flooding-process"});
  if (!child.ok()) return child.status();
  const auto answer = child->Ask(Json{{"server", server}, {"token", token}}.dump());
  if (!answer.ok()) return answer.status();
  return FloodingProcess(*std::move(child));
}

absl::Status FloodingProcess::Run(const LoadOptions& load, bool flooded) {
  return child_
      .Ask(Json{{"threads", load.threads},
                {"warm_up_s", load.warm_up_s},
                {"seconds", load.seconds},
                {"flooded", flooded}}
               .dump())
      .status();
}

absl::StatusOr<FloodResult::Caller> FloodingProcess::Report() {
  const auto answer = child_.Ask("{}");
  if (!answer.ok()) return answer.status();
  const auto report = ParseJson(*answer);
  if (!report.ok()) return report.status();
  return FloodResult::Caller{.equal = (*report)["equal"], .flooded = (*report)["flooded"]};
}

void RunFloodingProcess(std::istream& in, std::ostream& out) {
  std::unique_ptr<KVStore> store;
  FloodRounds rounds;
  std::atomic<uint64_t> next{0};
  for (std::string line; std::getline(in, line);) {
    const auto asked = ParseJson(line);
    Check(asked.status());
    Json answer = Json::object();
    if (asked->contains("server")) {
      auto connected =
          Connect((*asked)["server"].get<std::string>(), {.token = (*asked)["token"].get<std::string>()});
      Check(connected.status());
      store = *std::move(connected);
    } else if (asked->contains("threads")) {
      const LoadOptions load{.threads = (*asked)["threads"].get<int>(),
                             .warm_up_s = (*asked)["warm_up_s"].get<double>(),
                             .seconds = (*asked)["seconds"].get<double>(),
                             .rounds = 1};
      rounds.Of((*asked)["flooded"].get<bool>())
          .push_back(RunLoad(load, [&](int) {
                       return ReadOne(*store, next.fetch_add(7919, std::memory_order_relaxed), kFlood);
                     }).front());
    } else {
      const FloodResult::Caller caller = rounds.ToCaller();
      answer = {{"equal", caller.equal}, {"flooded", caller.flooded}};
    }
    out << answer.dump() << std::endl;
  }
}

// ---- the benchmark ----

absl::StatusOr<FloodResult> BenchFlood(const std::vector<std::unique_ptr<KVStore>>& callers,
                                       const FloodOptions& options, FloodingProcess* flood) {
  if (auto status = LoadRows(*callers.front()); !status.ok()) return status;
  const int each = options.load.threads;
  std::atomic<uint64_t> next{0};
  const auto run = [&](int of_first, bool flooded) {
    LoadOptions load = options.load;
    load.rounds = 1;
    std::optional<std::thread> elsewhere;
    // The first so many threads of this process are those of the first caller.
    const int here = flood == nullptr ? of_first : 0;
    if (flood != nullptr) {
      load.threads = of_first;
      load.rate = 0;
      elsewhere.emplace([flood, load, flooded] { Check(flood->Run(load, flooded)); });
    }
    load.threads = here + each * static_cast<int>(callers.size() - 1);
    load.rate = options.load.rate;
    LoadRound round = RunLoad(load, [&, here](int thread) {
                        const bool is_first = thread < here;
                        const size_t caller = is_first ? 0 : 1 + static_cast<size_t>((thread - here) / each);
                        return ReadOne(*callers.at(caller), next.fetch_add(7919, std::memory_order_relaxed),
                                       is_first ? kFlood : kOthers);
                      }).front();
    if (elsewhere) elsewhere->join();
    return round;
  };
  FloodRounds first;
  FloodRounds others;
  for (int i = 0; i < options.load.rounds; ++i) {
    for (const bool flooded : {false, true}) {
      const LoadRound round = run(flooded ? options.flood_threads : each, flooded);
      first.Of(flooded).push_back(Part(round, kFlood, options.load.seconds));
      others.Of(flooded).push_back(Part(round, kOthers, options.load.seconds));
    }
  }
  FloodResult result{
      .first = first.ToCaller(), .others = others.ToCaller(), .kept = Ratio(others.flooded, others.equal)};
  if (flood != nullptr) {
    auto reported = flood->Report();
    if (!reported.ok()) return reported.status();
    result.first = *std::move(reported);
  }
  if (auto status = callers.front()->DropDataset(kFloodDataset, {}); !status.ok()) return status;
  return result;
}

}  // namespace kvstore::bench
