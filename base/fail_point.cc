#include "base/fail_point.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace kvstore {
namespace {

using Hook = std::function<void(std::string_view)>;

std::shared_ptr<const Hook> FromEnvironment() {
  const char* const wanted = std::getenv("KV_FAIL_POINT");
  if (wanted == nullptr) return nullptr;
  constexpr std::string_view kHang = "hang:";
  std::string name(wanted);
  const bool hangs = name.starts_with(kHang);
  if (hangs) name.erase(0, kHang.size());
  return std::make_shared<const Hook>([name, hangs](std::string_view reached) {
    if (reached != name) return;
    if (!hangs) std::raise(SIGKILL);
    for (;;) ::pause();
  });
}

/// The hook of the process.
struct InstalledHook {
  Mutex mutex;
  std::shared_ptr<const Hook> hook ABSL_GUARDED_BY(mutex) = FromEnvironment();
  std::atomic<bool> any{hook != nullptr};  // whether there is one, to be read without the lock
};

InstalledHook& Installed() {
  static InstalledHook installed;
  return installed;
}

}  // namespace

void Reached(std::string_view name) {
  InstalledHook& installed = Installed();
  if (!installed.any.load(std::memory_order_relaxed)) return;
  std::shared_ptr<const Hook> hook;
  {
    const MutexLock lock(installed.mutex);
    hook = installed.hook;
  }
  if (hook != nullptr) (*hook)(name);
}

void SetFailPointHook(std::function<void(std::string_view)> hook) {
  InstalledHook& installed = Installed();
  const MutexLock lock(installed.mutex);
  installed.hook = hook ? std::make_shared<const Hook>(std::move(hook)) : nullptr;
  installed.any = installed.hook != nullptr;
}

}  // namespace kvstore
