#include "backends/mysql/changes/master_asks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "base/start_thread.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How often a caller who waits for as long as it takes looks whether its call is over.
constexpr std::chrono::milliseconds kLookWhetherOver{50};

}  // namespace

MasterAsks::~MasterAsks() {
  std::map<Host, std::shared_ptr<Asked>> ending;
  {
    const MutexLock lock(mutex_);
    for (const auto& [host, asked] : hosts_) asked->ends = true;
    ending.swap(hosts_);
  }
  wanted_.notify_all();
  for (const auto& [host, asked] : ending) asked->thread.join();
}

void MasterAsks::Work(const Host& host, Asked& asked) {
  MutexLock lock(mutex_);
  for (;;) {
    while (!asked.ends && asked.wanted <= asked.begun) lock.Wait(wanted_);
    if (asked.ends) break;
    ++asked.begun;
    asked.begun_at = Clock::now();
    lock.Unlock();
    MasterAnswer answer = ask_(host);
    lock.Lock();
    const bool late = Clock::now() - asked.begun_at > kPatience;
    asked.answer = std::move(answer);
    asked.was_late = late;
    asked.done = asked.begun;
    done_.notify_all();
  }
}

std::vector<MasterAnswer> MasterAsks::AskAll(std::span<const Host> hosts, Patience patience) {
  std::vector<MasterAnswer> answers;
  answers.reserve(hosts.size());
  using Awaited = std::pair<std::shared_ptr<const Asked>, uint64_t>;
  std::vector<absl::StatusOr<Awaited>> awaited;
  MutexLock lock(mutex_);
  for (const Host& host : hosts) {
    std::shared_ptr<Asked>& asked = hosts_[host];
    if (!asked) {
      asked = std::make_shared<Asked>();
      const absl::Status started = StartThread(asked->thread, fmt::format("the asks of {}", host.ToString()),
                                               [this, host, mine = asked.get()] { Work(host, *mine); });
      if (!started.ok()) {
        hosts_.erase(host);
        awaited.emplace_back(started);
        continue;
      }
    }
    asked->wanted = std::max(asked->wanted, asked->begun + 1);
    awaited.emplace_back(Awaited(asked, asked->begun + 1));
  }
  wanted_.notify_all();
  const auto begin = Clock::now();
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!awaited[i].ok()) {
      answers.emplace_back().status = awaited[i].status();
      continue;
    }
    const auto& [asked, number] = *awaited[i];
    const auto wait = asked->IsLate(begin) ? kPatienceWithLate : kPatience;
    answers.push_back(Await(lock, hosts[i], *asked, number, patience, begin + wait));
  }
  return answers;
}

MasterAnswer MasterAsks::Await(MutexLock& lock, const Host& host, const Asked& asked, uint64_t number,
                               Patience patience, Clock::time_point deadline) {
  const bool whole = patience == Patience::kWhole;
  while (asked.done < number) {
    const auto now = Clock::now();
    MasterAnswer none;
    if (auto over = CheckCall(); !over.ok()) {
      none.status = std::move(over);
      return none;
    }
    if (!whole && now >= deadline) {
      none.status = absl::UnavailableError(
          fmt::format("{} does not answer; what was written there is told when it does", host.ToString()));
      none.is_late = true;
      return none;
    }
    lock.WaitUntil(done_, EarlierDeadline(whole ? now + kLookWhetherOver : deadline));
  }
  return asked.answer;
}

void MasterAsks::Forget(const std::function<bool(const Host&)>& keep) {
  std::vector<std::shared_ptr<Asked>> ending;
  {
    const MutexLock lock(mutex_);
    for (auto at = hosts_.begin(); at != hosts_.end();) {
      Asked& asked = *at->second;
      if (keep(at->first) || asked.done < asked.wanted) {
        ++at;
        continue;
      }
      asked.ends = true;
      ending.push_back(std::move(at->second));
      at = hosts_.erase(at);
    }
  }
  wanted_.notify_all();
  for (const auto& asked : ending) asked->thread.join();
}

size_t MasterAsks::threads() const {
  const MutexLock lock(mutex_);
  return hosts_.size();
}

}  // namespace kvstore::mysql
