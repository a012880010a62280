#include "tests/chaos/clients.h"

#include <fmt/format.h>

namespace kvstore::testing::chaos {

Clients::Clients(Fleet& fleet, Tenants& tenants, Log& log, uint64_t seed) : fleet_(fleet), log_(log) {
  for (const auto& tenant : tenants) {
    threads_.emplace_back([this, &tenant = *tenant, seed = ++seed] { Run(tenant, seed); });
  }
}

void Clients::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Clients::Run(Tenant& tenant, uint64_t seed) {
  Random random(seed);
  std::vector<std::unique_ptr<KVStore>> stores;
  for (size_t i = 0; i < Fleet::kServers; ++i) stores.push_back(fleet_.Connect(i));
  while (!stop_ && !tenant.registers().full()) {
    const absl::Status status = tenant.Step(*stores[random.Below(stores.size())], random);
    ++calls_;
    if (!status.ok()) Count(tenant, status);
    // The clients do not load the machine fully: servers run on it, too, and the history must be checked in
    // the end.
    std::this_thread::sleep_for(std::chrono::milliseconds(2 + random.Below(8)));
  }
}

void Clients::Count(const Tenant& tenant, const absl::Status& status) {
  const std::string code(absl::StatusCodeToString(status.code()));
  const std::string message(status.message());
  const bool gone = absl::IsNotFound(status) || absl::IsDataLoss(status);
  if (gone && !tenant.churned()) log_.Fail("client", tenant.name() + ": " + status.ToString());
  const MutexLock lock(mutex_);
  // The first error of each kind is logged, so that its cause can be looked for.
  if (++errors_[tenant.name() + " " + code] == 1)
    log_.Say("client", tenant.name() + ": " + status.ToString());
}

std::string Clients::Summary() const {
  const MutexLock lock(mutex_);
  std::string text = fmt::format("{} calls", calls_.load());
  for (const auto& [kind, count] : errors_) text += fmt::format("; {} {}", count, kind);
  return text;
}

}  // namespace kvstore::testing::chaos
