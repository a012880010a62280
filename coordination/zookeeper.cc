#include "coordination/zookeeper.h"

#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

/// The answer that a completion leaves for the caller that waits.
struct Answer {
  int code = ZOPERATIONTIMEOUT;
  ZooKeeperNode node;
  std::vector<std::string> children;
};

/// Starts a call of the client's asynchronous interface, and waits for its answer for as long as `left`.
/// (Calls of the synchronous interface cannot be abandoned.)
///
/// start  Is called with the data to pass to the completion; returns the client's code.
template <typename Start>
Answer Call(std::chrono::nanoseconds left, Start start) {
  auto promise = std::make_shared<std::promise<Answer>>();
  auto future = promise->get_future();
  // The promise is shared with the completion, since the caller may give up first. The completion owns
  // `data`: the client calls it exactly once, at the latest when the handle is closed.
  auto* data = new std::shared_ptr<std::promise<Answer>>(promise);
  if (const int code = start(data); code != ZOK) {
    delete data;
    return {.code = code};
  }
  if (future.wait_for(left) != std::future_status::ready) return {};
  return future.get();
}

void Complete(const void* data, Answer answer) {
  const std::unique_ptr<const std::shared_ptr<std::promise<Answer>>> owned(
      static_cast<const std::shared_ptr<std::promise<Answer>>*>(data));
  (*owned)->set_value(std::move(answer));
}

void OnData(int code, const char* value, int size, const Stat* stat, const void* data) {
  Answer answer{.code = code};
  if (code == ZOK) {
    // A node without data has size -1.
    if (size > 0) answer.node.data.assign(value, static_cast<size_t>(size));
    answer.node.version = stat->version;
    answer.node.changed_ms = static_cast<uint64_t>(std::max<int64_t>(stat->mtime, 0));
    answer.node.change = {stat->mzxid, stat->mtime};
  }
  Complete(data, std::move(answer));
}

void OnChildren(int code, const String_vector* children, const void* data) {
  Answer answer{.code = code};
  if (code == ZOK) answer.children.assign(children->data, children->data + children->count);
  Complete(data, std::move(answer));
}

void OnListing(int code, const String_vector* children, const Stat* stat, const void* data) {
  Answer answer{.code = code};
  if (code == ZOK) {
    answer.children.assign(children->data, children->data + children->count);
    answer.node.version = stat->version;
  }
  Complete(data, std::move(answer));
}

void OnStat(int code, const Stat* stat, const void* data) {
  Answer answer{.code = code};
  if (code == ZOK) answer.node.change = {stat->mzxid, stat->mtime};
  Complete(data, std::move(answer));
}

void OnString(int code, const char*, const void* data) { Complete(data, {.code = code}); }

absl::Status CheckSize(const std::string& path, std::string_view data) {
  if (data.size() <= ZooKeeper::kMaxNodeBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} bytes, a node holds at most {}", path, data.size(), ZooKeeper::kMaxNodeBytes));
}

/// The access list of new nodes. An owned node may be read by everybody and written by its user only.
class Acl {
 public:
  explicit Acl(bool owned) : owned_(owned) {}
  const ACL_vector* get() const { return owned_ ? &vector_ : &ZOO_OPEN_ACL_UNSAFE; }

 private:
  const bool owned_;
  std::array<ACL, 2> entries_ = {{{ZOO_PERM_READ, ZOO_ANYONE_ID_UNSAFE}, {ZOO_PERM_ALL, ZOO_AUTH_IDS}}};
  ACL_vector vector_{static_cast<int32_t>(entries_.size()), entries_.data()};
};

/// A transaction, and where the client writes its results. Lives until the completion, since the caller may
/// give up before that.
struct Multi {
  Multi(std::vector<ZooKeeperStep> wanted, bool owned) : steps(std::move(wanted)), acl(owned) {
    results.resize(steps.size());
    for (const ZooKeeperStep& step : steps) {
      zoo_op_t& op = ops.emplace_back();
      const char* const path = step.path.c_str();
      const auto size = static_cast<int>(step.data.size());
      switch (step.kind) {
        case ZooKeeperStep::Kind::kCreate:
          zoo_create_op_init(&op, path, step.data.data(), size, acl.get(), ZOO_PERSISTENT, nullptr, 0);
          break;
        case ZooKeeperStep::Kind::kCreateEphemeral:
          zoo_create_op_init(&op, path, step.data.data(), size, acl.get(), ZOO_EPHEMERAL, nullptr, 0);
          break;
        case ZooKeeperStep::Kind::kSet:
          zoo_set_op_init(&op, path, step.data.data(), size, step.version, nullptr);
          break;
        case ZooKeeperStep::Kind::kDelete:
          zoo_delete_op_init(&op, path, step.version);
          break;
        case ZooKeeperStep::Kind::kCheck:
          zoo_check_op_init(&op, path, step.version);
          break;
      }
    }
  }
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  const std::vector<ZooKeeperStep> steps;
  const Acl acl;
  std::vector<zoo_op_t> ops;
  std::vector<zoo_op_result_t> results;
  std::promise<int> done;
};

void OnMulti(int code, const void* data) {
  const std::unique_ptr<const std::shared_ptr<Multi>> owned(static_cast<const std::shared_ptr<Multi>*>(data));
  (*owned)->done.set_value(code);
}

}  // namespace

thread_local bool ZooKeeper::ignores_deadline_ = false;

/// How long a call may wait: until its caller's deadline, and in each wait for at most call_timeout_ms.
class ZooKeeper::WaitBudget {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WaitBudget(const ZooKeeperOptions& options) : most_(options.call_timeout_ms) {
    if (deadline_ && *deadline_ - Clock::now() < most_) at_first_ = std::max(Left(), Clock::duration(0));
  }

  /// How long the next wait may take, for a connection or for an answer.
  Clock::duration Left() const {
    if (!deadline_) return most_;
    return std::clamp<Clock::duration>(*deadline_ - Clock::now(), Clock::duration(0), most_);
  }
  /// "within 5000 ms", for messages.
  std::string Within() const {
    if (!at_first_) return fmt::format("within {} ms", most_.count());
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*at_first_);
    return fmt::format("within {} ms, which is what was left of the call's time", left.count());
  }

 private:
  const std::chrono::milliseconds most_;
  const std::optional<Clock::time_point> deadline_ =
      ignores_deadline_ ? std::nullopt : CallScope::Current().deadline;
  std::optional<Clock::duration> at_first_;  // what the caller had left, if that is less
};

/// One session of the C client.
class ZooKeeper::Handle {
 public:
  explicit Handle(ZooKeeper& owner)
      : zh_(zookeeper_init2(owner.options_.servers.c_str(), &Handle::OnEvent,
                            static_cast<int>(owner.options_.session_timeout_ms), nullptr, &owner, 0,
                            // The client's own log is dropped: calls return the same errors.
                            [](const char*) {})) {}
  ~Handle() {
    if (zh_ != nullptr) zookeeper_close(zh_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  zhandle_t* get() const { return zh_; }
  bool connected() const { return zh_ != nullptr && zoo_state(zh_) == ZOO_CONNECTED_STATE; }
  bool ended() const {
    return zh_ == nullptr || zoo_state(zh_) == ZOO_EXPIRED_SESSION_STATE ||
           zoo_state(zh_) == ZOO_AUTH_FAILED_STATE;
  }

  /// Receives the events of sessions and of nodes, and passes both on without looking at them.
  static void OnEvent(zhandle_t*, int, int, const char*, void* context) {
    auto* const owner = static_cast<ZooKeeper*>(context);
    { const MutexLock lock(owner->mutex_); }
    owner->state_changed_.notify_all();
    if (owner->on_event_) owner->on_event_();
  }

 private:
  zhandle_t* const zh_;
};

ZooKeeper::ZooKeeper(ZooKeeperOptions options, std::function<void()> on_event, Away away)
    : options_(std::move(options)), on_event_(std::move(on_event)), away_(away) {}

ZooKeeper::~ZooKeeper() {
  std::shared_ptr<Handle> last;
  {
    const MutexLock lock(mutex_);
    last = std::move(handle_);
  }
  // `last` is closed here, without the lock, which OnEvent takes for the session's last events.
}

absl::StatusOr<std::shared_ptr<ZooKeeper::Handle>> ZooKeeper::AwaitConnection(const WaitBudget& budget) {
  std::shared_ptr<Handle>
      ended;  // destroyed after the lock: closing it waits for OnEvent, which takes the lock
  MutexLock lock(mutex_);
  if (handle_ && handle_->ended()) ended = std::move(handle_);
  if (!handle_) {
    handle_ = std::make_shared<Handle>(*this);
    if (handle_->get() == nullptr) {
      handle_.reset();
      return absl::UnavailableError(
          fmt::format("ZooKeeper at {}: the servers' names cannot be resolved", options_.servers));
    }
    if (!options_.auth.empty()) {
      const std::string& auth = options_.auth;
      zoo_add_auth(
          handle_->get(), "digest", auth.data(), static_cast<int>(auth.size()), [](int, const void*) {},
          nullptr);
    }
  }
  const std::shared_ptr<Handle> handle = handle_;
  const auto deadline = WaitBudget::Clock::now() + budget.Left();
  while (!handle->connected() && !handle->ended()) {
    if (lock.WaitUntil(state_changed_, deadline)) break;
  }
  // If no other call waits for it, it is given up here, and closed by `handle` after the lock.
  constexpr long kOnlyMine = 2;  // `handle` and `handle_`
  if (away_ == Away::kTriesInCalls && !handle->connected() && handle_ == handle &&
      handle_.use_count() == kOnlyMine) {
    handle_.reset();
  }
  lock.Unlock();
  if (handle->connected()) return handle;
  return absl::UnavailableError(
      fmt::format("ZooKeeper at {}: no connection {}", options_.servers, budget.Within()));
}

absl::Status ZooKeeper::ToStatus(int code, const WaitBudget& budget, std::string_view action,
                                 const std::string& path) const {
  switch (code) {
    case ZOK:
      return absl::OkStatus();
    case ZNONODE:
      return absl::NotFoundError(fmt::format("ZooKeeper at {}: there is no node {}", options_.servers, path));
    case ZNODEEXISTS:
      return absl::AlreadyExistsError(
          fmt::format("ZooKeeper at {}: the node {} exists", options_.servers, path));
    case ZBADVERSION:
      return absl::FailedPreconditionError(
          fmt::format("ZooKeeper at {}: {} was changed by somebody else meanwhile", options_.servers, path));
    case ZNOAUTH:
    case ZAUTHFAILED:
      return absl::PermissionDeniedError(
          fmt::format("ZooKeeper at {}: not allowed to {} {}", options_.servers, action, path));
    case ZBADARGUMENTS:
      return absl::InvalidArgumentError(
          fmt::format("'{}' is not a path of ZooKeeper: it must begin with / and not end with it", path));
    case ZOPERATIONTIMEOUT:
      return absl::UnavailableError(fmt::format("ZooKeeper at {}: cannot {} {}: no answer {}",
                                                options_.servers, action, path, budget.Within()));
    default:
      return absl::UnavailableError(
          fmt::format("ZooKeeper at {}: cannot {} {}: {}", options_.servers, action, path, zerror(code)));
  }
}

absl::StatusOr<ZooKeeperNode> ZooKeeper::Get(const std::string& path, bool watch) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  const watcher_fn watcher = watch ? &Handle::OnEvent : nullptr;
  Answer answer = Call(budget.Left(), [&](const void* data) {
    return zoo_awget((*handle)->get(), path.c_str(), watcher, this, &OnData, data);
  });
  if (answer.code == ZNONODE && watch) {
    // The read has set no watch on a node that does not exist; this sets one for its creation.
    const Answer exists = Call(budget.Left(), [&](const void* data) {
      return zoo_awexists((*handle)->get(), path.c_str(), watcher, this, &OnStat, data);
    });
    // It was created in between: the event makes the caller read again.
    if (exists.code == ZOK && on_event_) on_event_();
  }
  if (auto status = ToStatus(answer.code, budget, "read", path); !status.ok()) return status;
  return std::move(answer.node);
}

absl::StatusOr<ZooKeeperChange> ZooKeeper::Stat(const std::string& path, bool watch) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  const watcher_fn watcher = watch ? &Handle::OnEvent : nullptr;
  const Answer answer = Call(budget.Left(), [&](const void* data) {
    return zoo_awexists((*handle)->get(), path.c_str(), watcher, this, &OnStat, data);
  });
  if (auto status = ToStatus(answer.code, budget, "read", path); !status.ok()) return status;
  return answer.node.change;
}

absl::Status ZooKeeper::Set(const std::string& path, std::string_view data, int32_t version) {
  if (auto status = CheckSize(path, data); !status.ok()) return status;
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  const Answer answer = Call(budget.Left(), [&](const void* completion) {
    return zoo_aset((*handle)->get(), path.c_str(), data.data(), static_cast<int>(data.size()), version,
                    &OnStat, completion);
  });
  return ToStatus(answer.code, budget, "write", path);
}

absl::Status ZooKeeper::CreateOne(const std::string& path, std::string_view data, bool ephemeral, bool open) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  const Acl acl(!open && !options_.auth.empty());
  const Answer answer = Call(budget.Left(), [&](const void* completion) {
    return zoo_acreate((*handle)->get(), path.c_str(), data.data(), static_cast<int>(data.size()), acl.get(),
                       ephemeral ? ZOO_EPHEMERAL : ZOO_PERSISTENT, &OnString, completion);
  });
  return ToStatus(answer.code, budget, "create", path);
}

absl::Status ZooKeeper::CreateEphemeral(const std::string& path, std::string_view data) {
  return CreateOne(path, data, /*ephemeral=*/true, /*open=*/false);
}

absl::Status ZooKeeper::Delete(const std::string& path) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  const Answer answer = Call(budget.Left(), [&](const void* completion) {
    return zoo_adelete((*handle)->get(), path.c_str(), -1,
                       [](int code, const void* data) { Complete(data, {.code = code}); }, completion);
  });
  return ToStatus(answer.code, budget, "delete", path);
}

absl::StatusOr<std::vector<std::string>> ZooKeeper::Children(const std::string& path) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  Answer answer = Call(budget.Left(), [&](const void* completion) {
    return zoo_aget_children((*handle)->get(), path.c_str(), 0, &OnChildren, completion);
  });
  if (auto status = ToStatus(answer.code, budget, "list", path); !status.ok()) return status;
  return std::move(answer.children);
}

absl::StatusOr<ZooKeeperListing> ZooKeeper::List(const std::string& path) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  Answer answer = Call(budget.Left(), [&](const void* completion) {
    return zoo_aget_children2((*handle)->get(), path.c_str(), 0, &OnListing, completion);
  });
  if (auto status = ToStatus(answer.code, budget, "list", path); !status.ok()) return status;
  return ZooKeeperListing{std::move(answer.children), answer.node.version};
}

absl::Status ZooKeeper::Change(std::vector<ZooKeeperStep> steps) {
  for (const ZooKeeperStep& step : steps) {
    if (auto status = CheckSize(step.path, step.data); !status.ok()) return status;
  }
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  auto multi = std::make_shared<Multi>(std::move(steps), !options_.auth.empty());
  auto done = multi->done.get_future();
  // The completion owns this.
  auto* const data = new std::shared_ptr<Multi>(multi);
  int code = zoo_amulti((*handle)->get(), static_cast<int>(multi->ops.size()), multi->ops.data(),
                        multi->results.data(), &OnMulti, data);
  if (code != ZOK) {
    delete data;
  } else if (done.wait_for(budget.Left()) == std::future_status::ready) {
    code = done.get();
  } else {
    code = ZOPERATIONTIMEOUT;
  }
  if (code == ZOK) return absl::OkStatus();
  // The step that failed has the reason; the results of the others only say that they were not done. Until
  // the answer has arrived the client may still write the results.
  if (done.valid()) return ToStatus(code, budget, "change", multi->steps.front().path);
  for (size_t i = 0; i < multi->steps.size(); ++i) {
    const int failed = multi->results[i].err;
    if (failed != ZOK && failed != ZRUNTIMEINCONSISTENCY)
      return ToStatus(failed, budget, "change", multi->steps[i].path);
  }
  return ToStatus(code, budget, "change", multi->steps.front().path);
}

absl::Status ZooKeeper::Sync(const std::string& path) {
  const WaitBudget budget(options_);
  const auto handle = AwaitConnection(budget);
  if (!handle.ok()) return handle.status();
  const Answer answer = Call(budget.Left(), [&](const void* completion) {
    return zoo_async((*handle)->get(), path.c_str(), &OnString, completion);
  });
  return ToStatus(answer.code, budget, "sync", path);
}

bool ZooKeeper::connected() {
  const MutexLock lock(mutex_);
  return handle_ && handle_->connected();
}

absl::Status ZooKeeper::Create(const std::string& path, std::string_view data, bool open) {
  if (auto status = CheckSize(path, data); !status.ok()) return status;
  absl::Status status = CreateOne(path, data, /*ephemeral=*/false, open);
  if (!absl::IsNotFound(status)) return status;
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    status = CreateOne(path.substr(0, slash), "", /*ephemeral=*/false, /*open=*/false);
    if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  }
  return CreateOne(path, data, /*ephemeral=*/false, open);
}

}  // namespace kvstore
