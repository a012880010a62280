#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/chaos/clients.h"
#include "tests/chaos/faults.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/log.h"
#include "tests/chaos/operators.h"
#include "tests/chaos/recovery.h"
#include "tests/chaos/settings.h"
#include "tests/chaos/tenants.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_dir.h"

/// Operators whose actions conflict with each other's, faults, and clients whose history is checked, all at
/// once and on real servers. settings.h says how a run is controlled and repeated.
namespace kvstore::testing::chaos {
namespace {

Tenants MakeTenants(Fleet& fleet) {
  const auto rows = [](std::string name, std::string backend, bool churned) {
    return std::make_unique<RowsTenant>(DatasetSpec{.name = std::move(name), .backend = std::move(backend)},
                                        churned, Fleet::kModShards);
  };
  Tenants tenants;
  tenants.push_back(rows("events", "near", false));
  tenants.push_back(rows("pages", "mysql", false));
  tenants.push_back(rows("drafts", "mysql", true));
  tenants.push_back(std::make_unique<ObjectsTenant>(
      DatasetSpec{.name = "pins", .shape = Shape::kObjects, .backend = "mysql", .type = 1}));
  tenants.push_back(std::make_unique<MappingsTenant>(
      DatasetSpec{.name = "links", .shape = Shape::kMappings, .backend = "far"},
      [&fleet] { return fleet.open_id_shards(); }));
  const auto store = fleet.Connect(0);
  for (const auto& tenant : tenants) {
    const absl::Status status = store->CreateDataset(tenant->spec());
    EXPECT_TRUE(status.ok()) << status;
    // The other servers have to learn of the dataset.
    for (size_t i = 1; i < Fleet::kServers; ++i) {
      EXPECT_TRUE(Eventually([&] { return fleet.Connect(i)->GetDataset(tenant->name()).ok(); }));
    }
  }
  return tenants;
}

TEST(Chaos, OperatorsCrossEachOtherAndNothingIsLost) {
  const Settings settings = Settings::FromEnvironment();
  const TempDir dir;
  const std::filesystem::path folder =
      settings.keep.empty() ? dir.path() : std::filesystem::path(settings.keep);
  std::filesystem::create_directories(folder);
  Log log(folder / "chaos.log");
  Fleet fleet(log, folder);
  Tenants tenants = MakeTenants(fleet);
  {
    Clients clients(fleet, tenants, log, settings.seed * 31 + 3000);
    {
      Operators operators(fleet, tenants, log, settings);
      Faults(fleet, tenants, log, settings).Run();
    }
    log.Say("test", "the operators have stopped");
    Recovery recovery(fleet, tenants, log, settings);
    recovery.RepairFleet();
    recovery.EndMigrations();
    recovery.UseAll();
    recovery.CheckHosts();
    clients.Stop();
    log.Say("test", clients.Summary());
    recovery.ReadAll();
  }
  for (size_t i = 0; i < Fleet::kServers; ++i) {
    if (!fleet.Runs(i)) log.Fail(Fleet::NameOf(i), "does not run");
    fleet.StopServer(i);
  }
  for (const auto& tenant : tenants) {
    const auto problem = tenant->registers().Check();
    log.Say("test", fmt::format("{}: {} operations", tenant->name(), tenant->registers().size()));
    if (problem)
      log.Fail("history", tenant->name() + ": no order explains what clients were told: " + *problem);
    if (const auto mistake = tenant->mistake()) log.Fail("history", tenant->name() + ": " + *mistake);
  }
  std::string failures;
  for (const std::string& failure : log.failures()) failures += "\n" + failure;
  EXPECT_TRUE(failures.empty()) << log.text() << "\nseed " << settings.seed << ":" << failures;
}

}  // namespace
}  // namespace kvstore::testing::chaos
