#include "base/fail_point.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

namespace kvstore {
namespace {

std::function<void(std::string_view)>& Hook() {
  static std::function<void(std::string_view)> hook = []() -> std::function<void(std::string_view)> {
    const char* const wanted = std::getenv("KV_FAIL_POINT");
    if (wanted == nullptr) return nullptr;
    return [name = std::string(wanted)](std::string_view reached) {
      if (reached == name) std::raise(SIGKILL);
    };
  }();
  return hook;
}

}  // namespace

void Reached(std::string_view name) {
  const auto& hook = Hook();
  if (hook) hook(name);
}

void SetFailPointHook(std::function<void(std::string_view)> hook) { Hook() = std::move(hook); }

}  // namespace kvstore
