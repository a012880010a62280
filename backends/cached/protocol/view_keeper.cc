#include "backends/cached/protocol/view_keeper.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "kvstore_api/call_scope.h"

namespace kvstore::cached {
namespace {

/// After a failure, callers are told of it for a moment, and do not each wait for ZooKeeper.
constexpr std::chrono::milliseconds kRest{300};

}  // namespace

std::string ViewNode(std::string_view root, std::string_view backend) {
  return fmt::format("{}/caches/{}", root, backend);
}

ViewKeeper::ViewKeeper(const ZooKeeperOptions& options, std::string path, View first)
    : path_(std::move(path)),
      first_(std::move(first)),
      zookeeper_(options,
                 [this] {
                   const MutexLock lock(mutex_);
                   wanted_ = true;
                   changed_.notify_all();
                 }),
      thread_([this] { Run(); }) {}

ViewKeeper::~ViewKeeper() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<ViewKeeper::Turn> ViewKeeper::TakeTurn(bool share) {
  MutexLock lock(mutex_);
  const uint64_t before = begun_;
  for (;;) {
    // The answer to a question that another thread has asked since this one came is as good as its own, and
    // so is a failure of a moment ago (kRest).
    if (share && answered_ > before) return Turn::kAnswered;
    if (share && !problem_.ok() && BootClock::now() < failed_ + kRest) return problem_;
    if (!asking_) break;
    lock.WaitUntil(changed_, EarlierDeadline(CallLimits::Clock::now() + std::chrono::milliseconds(50)));
    if (auto status = CheckCall(); !status.ok()) return status;
  }
  asking_ = true;
  ++begun_;
  return Turn::kMine;
}

void ViewKeeper::EndTurn(const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    if (status.ok()) {
      answered_ = begun_;
      problem_ = status;
    } else if (CheckCall().ok()) {
      // If this thread's call had merely run out of time, that would say nothing about ZooKeeper.
      if (problem_.ok()) {
        spdlog::warn("caches: the list of servers cannot be read, so that caches are not used: {}",
                     std::string(status.message()));
      }
      problem_ = status;
      failed_ = BootClock::now();
    }
    asking_ = false;
  }
  changed_.notify_all();
}

absl::Status ViewKeeper::Refresh() {
  const auto turn = TakeTurn(/*share=*/true);
  if (!turn.ok()) return turn.status();
  if (*turn == Turn::kAnswered) return absl::OkStatus();
  absl::Status status = Read();
  EndTurn(status);
  return status;
}

void ViewKeeper::Adopt(const ZooKeeperNode& node, View view, BootClock::time_point asked) {
  const auto before = known_.Load();
  // A tenth less than the lease, as clocks do not run at the same speed.
  const auto holds = asked + std::chrono::milliseconds(view.lease_ms) * 9 / 10;
  version_ = node.version;
  // A node that was deleted and made again may have the version of before: the text tells.
  if (before != nullptr && before->text == node.data) {
    before->holds_until_ = holds.time_since_epoch().count();
    return;
  }
  auto next = std::make_shared<KnownView>(std::move(view), node.data);
  for (const auto& [server, when] : next->view.suspended) {
    auto since = BootClock::now();
    if (before != nullptr) {
      const auto knew = before->view.suspended.find(server);
      if (knew != before->view.suspended.end() && knew->second == when) {
        since = before->suspended_since.at(server);
      }
    }
    next->suspended_since[server] = since;
  }
  next->holds_until_ = holds.time_since_epoch().count();
  known_.Store(next);
}

absl::Status ViewKeeper::Read() {
  for (;;) {
    const auto asked = BootClock::now();
    auto node = zookeeper_.Get(path_, /*watch=*/true);
    if (absl::IsNotFound(node.status())) {
      auto status = zookeeper_.Create(path_, ToText(first_), /*open=*/true);
      if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
      continue;
    }
    if (!node.ok()) return node.status();
    auto checked = zookeeper_.Change(
        {{.kind = ZooKeeperStep::Kind::kCheck, .path = path_, .data = {}, .version = node->version}});
    if (absl::IsFailedPrecondition(checked) || absl::IsNotFound(checked)) continue;  // it has changed since
    if (!checked.ok()) return checked;
    auto view = ParseView(node->data);
    if (!view.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("ZooKeeper, {}: {}", path_, std::string(view.status().message())));
    }
    Adopt(*node, *std::move(view), asked);
    return absl::OkStatus();
  }
}

absl::Status ViewKeeper::Change(const std::function<bool(View&)>& change) {
  if (const auto turn = TakeTurn(/*share=*/false); !turn.ok()) return turn.status();
  const auto replace = [&]() -> absl::Status {
    for (;;) {
      if (auto status = Read(); !status.ok()) return status;
      View view = known_.Load()->view;
      if (!change(view)) return absl::OkStatus();
      auto status = zookeeper_.Set(path_, ToText(view), version_);
      if (absl::IsFailedPrecondition(status)) continue;  // somebody else was first
      if (!status.ok()) return status;
      return Read();
    }
  };
  absl::Status status = replace();
  EndTurn(status);
  return status;
}

void ViewKeeper::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    wanted_ = false;
    lock.Unlock();
    if (const auto turn = TakeTurn(/*share=*/false); turn.ok()) EndTurn(Read());
    const auto known = known_.Load();
    const auto lease = std::chrono::milliseconds(known == nullptr ? first_.lease_ms : known->view.lease_ms);
    lock.Lock();
    const auto next = std::chrono::steady_clock::now() + lease / 3;
    while (!stopping_ && !wanted_) {
      if (lock.WaitUntil(changed_, next)) break;
    }
  }
}

}  // namespace kvstore::cached
