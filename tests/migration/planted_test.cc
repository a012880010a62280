#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "backend_api/forwarding_endpoint.h"
#include "tests/migration/migrating_store.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/temp_dir.h"

/// Plants mistakes in the protocol: the check of the history, or verification, must find each. Mistakes that
/// need two workers or a restart are in tests/model.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

/// Removes log entries that were added after those that were read.
class RemovesUnread : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry>) override {
    const auto all = inner->ReadDirty(100'000);
    if (!all.ok()) return all.status();
    return inner->RemoveDirty(epoch, *all);
  }
};

/// Waits for the log to be empty, and only then freezes.
class DrainsBeforeTheFreeze : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    if (state == EndpointState::kFrozen) {
      freezes_ = true;
      return absl::OkStatus();
    }
    if (state == EndpointState::kMoved && freezes_) {
      freezes_ = false;
      if (auto status = inner->TransitionTo(epoch, EndpointState::kFrozen, capture); !status.ok())
        return status;
    }
    return inner->TransitionTo(epoch, state, capture);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override {
    // Says that it is empty after a while, as if it had been drained.
    if (freezes_ && ++reads_ > 3) return std::vector<DirtyEntry>();
    return inner->ReadDirty(limit);
  }

 private:
  bool freezes_ = false;
  int reads_ = 0;
};

/// Does not record deletes in the log.
class CapturesPutsOnly : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override {
    auto entries = inner->ReadDirty(limit);
    if (!entries.ok()) return entries;
    std::vector<std::string> keys;
    for (const DirtyEntry& entry : *entries) keys.push_back(entry.key);
    std::set<std::string> units(keys.begin(), keys.end());
    std::erase_if(units, [](const std::string& key) { return key.size() < 10; });
    const auto read = inner->Read(std::vector<std::string>(units.begin(), units.end()), 1);
    if (!read.ok()) return read.status();
    std::set<std::string> there;
    for (const Unit& unit : *read) {
      if (!unit.cells.empty()) there.insert(unit.key);
    }
    std::vector<DirtyEntry> puts;
    std::vector<DirtyEntry> deletes;
    for (DirtyEntry& entry : *entries)
      (there.contains(entry.key) ? puts : deletes).push_back(std::move(entry));
    if (!deletes.empty()) inner->RemoveDirty(epoch_, deletes).IgnoreError();
    return puts;
  }
  absl::Status RaiseEpoch(uint64_t epoch) override {
    epoch_ = epoch;
    return inner->RaiseEpoch(epoch);
  }

 private:
  std::atomic<uint64_t> epoch_{0};
};

/// Serves reads on the source although the target serves already.
class ReadsAfterMoved : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    if (state == EndpointState::kMoved) return absl::OkStatus();
    absl::Status status = inner->TransitionTo(epoch, state, capture);
    // Gives clients time to read here before the catalog sends them elsewhere.
    if (state == EndpointState::kServing) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return status;
  }
};

/// Does not record writes to the side that has just begun to serve.
class OpensWithoutCapture : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    opened_ = opened_ || (state == EndpointState::kServing && imported_);
    imported_ = imported_ || state == EndpointState::kImporting;
    return inner->TransitionTo(epoch, state, capture);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override {
    auto entries = inner->ReadDirty(limit);
    if (opened_ && entries.ok()) {
      inner->RemoveDirty(epoch_, *entries).IgnoreError();
      return std::vector<DirtyEntry>();
    }
    return entries;
  }
  absl::Status RaiseEpoch(uint64_t epoch) override {
    epoch_ = epoch;
    return inner->RaiseEpoch(epoch);
  }

 private:
  std::atomic<bool> imported_{false};
  std::atomic<bool> opened_{false};
  std::atomic<uint64_t> epoch_{0};
};

/// Copies content that was read before the log was listed.
class ReadsBeforeItLists : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    std::vector<Unit> units;
    for (const std::string& key : keys) {
      auto now = inner->Read({&key, 1}, as_of);
      if (!now.ok()) return now;
      // Returns the content as it was when it was read last.
      Unit& last = last_.try_emplace(key, (*now)[0]).first->second;
      units.push_back(std::exchange(last, (*now)[0]));
    }
    return units;
  }

 private:
  std::map<std::string, Unit> last_;  // Read is called by one thread at a time here
};

template <typename Planted>
Wrap Plant() {
  return [](std::unique_ptr<MigrationEndpoint> endpoint) {
    return std::make_unique<Planted>(std::move(endpoint));
  };
}

/// Migrates there and back under load; returns whether the mistake was found.
bool IsFound(const Wrap& wrap, uint64_t seed) {
  SharedFleet().Clear();
  const TempDir dir;
  MigratingStore store(dir.path(), wrap);
  EXPECT_TRUE(store.router().CreateDataset({.name = "events"}).ok());
  History history(Clients::kKeys);
  bool repaired = false;
  {
    Clients clients(store.router(), "events", history, 6, seed);
    const StaleClient stale(store.StaleRows("events"), history, seed + 77);
    const auto phase_within = [&](const std::string& phase) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(4);
      while (store.PhaseOf("events") != phase) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return true;
    };
    clients.Work(50);
    store.Do("create", "events", {{"target", "mysql"}, {"share", 100}});
    store.Do("start", "events");
    if (phase_within("ready")) {
      clients.Work(100);
      store.Do("cutover", "events");
      if (phase_within("reversible")) {
        clients.Work(100);
        store.Do("reverse", "events");
        phase_within("ready");
        clients.Work(100);
      }
    }
    repaired = store.Do("status", "events")["differences"] > 0;
  }
  return repaired || history.Check().has_value();
}

class PlantedTest : public ::testing::TestWithParam<std::pair<const char*, Wrap>> {};

TEST_P(PlantedTest, IsFound) {
  const uint64_t seed = Seed("planted");
  bool found = false;
  for (int attempt = 0; attempt < 15 && !found; ++attempt) {
    found = IsFound(GetParam().second, seed + static_cast<uint64_t>(attempt) * 1000);
  }
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(Mistakes, PlantedTest,
                         ::testing::Values(std::pair("RemovesUnread", Plant<RemovesUnread>()),
                                           std::pair("DrainsBeforeTheFreeze", Plant<DrainsBeforeTheFreeze>()),
                                           std::pair("CapturesPutsOnly", Plant<CapturesPutsOnly>()),
                                           std::pair("ReadsAfterMoved", Plant<ReadsAfterMoved>()),
                                           std::pair("OpensWithoutCapture", Plant<OpensWithoutCapture>()),
                                           std::pair("ReadsBeforeItLists", Plant<ReadsBeforeItLists>())),
                         [](const auto& one) { return std::string(one.param.first); });

TEST(Planted, WithoutAMistakeNothingIsFound) {
  const uint64_t seed = Seed("planted");
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(IsFound(Plant<ForwardingEndpoint>(), seed + static_cast<uint64_t>(attempt) * 1000));
  }
}

}  // namespace
}  // namespace kvstore::testing
