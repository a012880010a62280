#include "backend_api/prompt_scope.h"

#include "absl/strings/cord.h"

namespace kvstore {
namespace {

constexpr char kWouldWaitPayload[] = "kvstore/would-wait";

thread_local bool prompt = false;

}  // namespace

PromptScope::PromptScope() : before_(prompt) { prompt = true; }
PromptScope::~PromptScope() { prompt = before_; }

bool IsPrompt() { return prompt; }

absl::Status WouldWaitError() {
  absl::Status status = absl::UnavailableError("the write would have to wait, and its thread must not");
  status.SetPayload(kWouldWaitPayload, absl::Cord());
  return status;
}

bool IsWouldWait(const absl::Status& status) {
  return !status.ok() && status.GetPayload(kWouldWaitPayload).has_value();
}

}  // namespace kvstore
