#include "base/fail_point.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kvstore {
namespace {

using Hook = std::function<void(std::string_view)>;

std::shared_ptr<const Hook> FromEnvironment() {
  const char* const wanted = std::getenv("KV_FAIL_POINT");
  if (wanted == nullptr) return nullptr;
  return std::make_shared<const Hook>([name = std::string(wanted)](std::string_view reached) {
    if (reached == name) std::raise(SIGKILL);
  });
}

/// The hook of the process.
struct Set {
  std::mutex mutex;
  std::shared_ptr<const Hook> hook = FromEnvironment();  // guarded by mutex
  std::atomic<bool> any{hook != nullptr};
};

Set& TheSet() {
  static Set set;
  return set;
}

}  // namespace

void Reached(std::string_view name) {
  Set& set = TheSet();
  if (!set.any.load(std::memory_order_relaxed)) return;
  std::shared_ptr<const Hook> hook;
  {
    const std::lock_guard lock(set.mutex);
    hook = set.hook;
  }
  if (hook != nullptr) (*hook)(name);
}

void SetFailPointHook(std::function<void(std::string_view)> hook) {
  Set& set = TheSet();
  const std::lock_guard lock(set.mutex);
  set.hook = hook ? std::make_shared<const Hook>(std::move(hook)) : nullptr;
  set.any = set.hook != nullptr;
}

}  // namespace kvstore
