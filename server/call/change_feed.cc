#include "server/call/change_feed.h"

#include <algorithm>
#include <set>
#include <variant>

#include "absl/strings/cord.h"
#include "base/start_thread.h"

namespace kvstore::server {
namespace {

constexpr char kNothingYetPayload[] = "kvstore/nothing-yet";

size_t BytesOf(const ChangePage& page) {
  size_t bytes = sizeof(page) + page.token.size();
  for (const Change& change : page.changes) {
    bytes += sizeof(change) + change.token.size();
    if (const auto* const row = std::get_if<RowChange>(&change.what)) {
      bytes += row->row.size() + (row->column ? row->column->size() : 0);
      for (const Cell& cell : row->cells) bytes += sizeof(cell) + cell.value.size();
    } else if (const auto* const object = std::get_if<ObjectChange>(&change.what)) {
      bytes += object->data ? object->data->size() : 0;
    }
  }
  return bytes;
}

}  // namespace

ChangeFeed::ChangeFeed(Router& router, std::function<bool()> draining)
    : router_(router), draining_(std::move(draining)), thread_([this] { Watch(); }) {}

ChangeFeed::~ChangeFeed() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  stopped_.notify_all();
  look_.notify_all();
  thread_.join();
  for (std::thread& looker : lookers_) looker.join();
}

// ---- pages ----

absl::StatusOr<ChangeFeed::Page> ChangeFeed::Read(const std::string& dataset, const std::string& from) {
  const Place place(dataset, from);
  const auto spec = router_.GetDataset(dataset);
  if (spec.ok() && spec->keep_changes_ms != 0) {
    const MutexLock lock(mutex_);
    const auto found = kept_.find(place);
    if (found != kept_.end() && found->second.incarnation == spec->incarnation) {
      ++shared_;
      return found->second.page;
    }
  }
  auto read = router_.ReadChanges(dataset, from, kPage);
  if (!read.ok()) return read.status();
  auto page = std::make_shared<const ChangePage>(*std::move(read));
  // Behind what is no token there is something else each time.
  const bool is_token = from != kChangesFromBegin && from != kChangesFromNow;
  if (is_token && !page->changes.empty() && spec.ok()) {
    const MutexLock lock(mutex_);
    ++read_;
    Keep(place,
         {.page = page, .incarnation = spec->incarnation, .bytes = BytesOf(*page), .read = Clock::now()});
  }
  return page;
}

void ChangeFeed::Keep(const Place& place, Kept kept) {
  const size_t bytes = kept.bytes;
  if (!kept_.emplace(place, std::move(kept)).second) return;
  order_.push_back(place);
  kept_bytes_ += bytes;
  Forget();
}

void ChangeFeed::Forget() {
  const auto oldest = Clock::now() - kKept;
  while (!order_.empty()) {
    const auto first = kept_.find(order_.front());
    if (kept_bytes_ <= kMaxKeptBytes && first->second.read >= oldest) return;
    kept_bytes_ -= first->second.bytes;
    kept_.erase(first);
    order_.pop_front();
  }
}

// ---- those who wait ----

void ChangeFeed::Wait(const std::string& dataset, const std::string& token, SuspendedCalls::Suspended call) {
  const MutexLock lock(mutex_);
  const bool first = waiting_.empty();
  waiting_[Place(dataset, token)].push_back(std::move(call));
  if (first) wanted_.notify_all();
}

size_t ChangeFeed::waiting() const {
  const MutexLock lock(mutex_);
  size_t count = 0;
  for (const auto& [place, calls] : waiting_) count += calls.size();
  return count;
}

size_t ChangeFeed::kept_bytes() const {
  const MutexLock lock(mutex_);
  return kept_bytes_;
}

uint64_t ChangeFeed::read() const {
  const MutexLock lock(mutex_);
  return read_;
}

uint64_t ChangeFeed::shared() const {
  const MutexLock lock(mutex_);
  return shared_;
}

void ChangeFeed::Watch() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && waiting_.empty()) {
      if (kept_.empty()) {
        lock.Wait(wanted_);
      } else {
        lock.WaitUntil(wanted_, Clock::now() + kKept);
        Forget();
      }
    }
    if (stopping_) return;
    std::vector<Place> places;
    places.reserve(waiting_.size());
    for (const auto& [place, calls] : waiting_) places.push_back(place);
    HandOver(places);
    lock.Unlock();
    const auto took = LookAt(std::move(places));
    lock.Lock();
    Forget();
    const auto next = Clock::now() + RestAfter(took);
    while (!stopping_ && !lock.WaitUntil(stopped_, next)) {
    }
  }
}

ChangeFeed::Clock::duration ChangeFeed::LookAt(std::vector<Place> places) {
  const auto begun = Clock::now();
  const bool all = draining_();
  // When the server begins to stop, the places that were not looked at yet count as if they had news.
  if (!all) std::erase_if(places, [this](const Place& place) { return !draining_() && !HasNews(place); });
  const auto took = Clock::now() - begun;
  std::vector<SuspendedCalls::Suspended> taken;
  {
    const MutexLock lock(mutex_);
    taken = Dequeue(places, all);
  }
  for (SuspendedCalls::Suspended& call : taken) call.lane.Post(std::move(call.retry));
  return took;
}

void ChangeFeed::HandOver(std::vector<Place>& places) {
  const auto now = Clock::now();
  std::set<std::string> followed;
  std::erase_if(places, [&](const Place& place) {
    const auto where = router_.Locate(place.first);
    if (!where || !where->waits) return false;
    followed.insert(place.first);
    return true;
  });
  std::erase_if(remote_,
                [&](const auto& one) { return !one.second.is_looked_at && !followed.contains(one.first); });
  for (const std::string& dataset : followed) {
    Remote& remote = remote_[dataset];
    if (remote.is_looked_at || remote.next > now) continue;
    remote.is_looked_at = true;
    to_look_at_.emplace_back(dataset);
  }
  for (size_t ready = idle_lookers_; ready < to_look_at_.size() && lookers_.size() < kMaxLookers; ++ready) {
    std::thread looker;
    // Without it those that there are look at one dataset after another, and the next round tries again.
    if (!StartThread(looker, "followers of datasets on other machines", [this] { Look(); }).ok()) break;
    lookers_.push_back(std::move(looker));
  }
  look_.notify_all();
}

void ChangeFeed::Look() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_lookers_;
    while (!stopping_ && to_look_at_.empty()) lock.Wait(look_);
    --idle_lookers_;
    if (stopping_) return;
    const std::string dataset = std::move(to_look_at_.front());
    to_look_at_.pop_front();
    std::vector<Place> places;
    for (auto at = waiting_.lower_bound(Place(dataset, "")); at != waiting_.end(); ++at) {
      if (at->first.first != dataset) break;
      places.push_back(at->first);
    }
    lock.Unlock();
    const auto took = LookAt(std::move(places));
    lock.Lock();
    remote_[dataset] = {.is_looked_at = false, .next = Clock::now() + RestAfter(took)};
  }
}

bool ChangeFeed::HasNews(const Place& place) {
  // An error is news, too: the call ends with it.
  const auto page = Read(place.first, place.second);
  return !page.ok() || (*page)->token != place.second;
}

std::vector<SuspendedCalls::Suspended> ChangeFeed::Dequeue(const std::vector<Place>& places, bool all) {
  std::vector<SuspendedCalls::Suspended> taken;
  const auto now = Clock::now();
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    std::vector<SuspendedCalls::Suspended>& calls = at->second;
    const bool has_news = all || std::binary_search(places.begin(), places.end(), at->first);
    const auto rest = std::stable_partition(calls.begin(), calls.end(),
                                            [&](const auto& call) { return has_news || call.due(now); });
    std::move(calls.begin(), rest, std::back_inserter(taken));
    calls.erase(calls.begin(), rest);
    at = calls.empty() ? waiting_.erase(at) : std::next(at);
  }
  return taken;
}

// ---- followers ----

absl::StatusOr<ChangeFeed::Page> ChangeFollower::Next() {
  auto page = feed_.Read(dataset_, token_);
  if (!page.ok()) return page.status();
  token_ = (*page)->token;
  const auto now = ChangeFeed::Clock::now();
  // A page that has nothing and is not complete says nothing: it is of a fleet of which a host is waited for.
  const bool says_nothing =
      (*page)->changes.empty() && ((*page)->complete_until_ms == 0 || now - told_ < kTellInterval);
  if (says_nothing) return ChangeFeed::Page();
  if ((*page)->complete_until_ms != 0) told_ = now;
  return page;
}

absl::Status NothingYetError(const std::string& token) {
  absl::Status status = absl::UnavailableError("there are no changes yet");
  status.SetPayload(kNothingYetPayload, absl::Cord(token));
  return status;
}

std::optional<std::string> NothingYetBehind(const absl::Status& status) {
  const auto token = status.GetPayload(kNothingYetPayload);
  return token ? std::optional(std::string(*token)) : std::nullopt;
}

}  // namespace kvstore::server
