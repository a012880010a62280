#include "tests/backend_suite/suite.h"

#include <map>
#include <memory>

#include "tests/backends/toy/toy_backend.h"

namespace kvstore::testing {
namespace {

UnderTest Toy() {
  // The suite opens a backend again on the folder of the one before: here it finds the same maps.
  const auto disks = std::make_shared<std::map<std::filesystem::path, std::shared_ptr<ToyDisk>>>();
  return {
      .name = "Toy",
      .open = [disks](const std::filesystem::path& dir,
                      std::span<const DatasetSpec> /*known*/) -> absl::StatusOr<std::unique_ptr<Backend>> {
        std::shared_ptr<ToyDisk>& disk = (*disks)[dir];
        if (disk == nullptr) disk = std::make_shared<ToyDisk>();
        return OpenToyBackend(disk);
      },
      // Nothing in a map can be rearranged without changing it.
      .disturb = [](Backend&, const DatasetSpec&, Random&) {},
  };
}

INSTANTIATE_TEST_SUITE_P(Toy, DatasetsSuite, ::testing::Values(Toy()), PrintName);
INSTANTIATE_TEST_SUITE_P(Toy, RowsSuite, ::testing::Values(Toy()), PrintName);
INSTANTIATE_TEST_SUITE_P(Toy, WritesSuite, ::testing::Values(Toy()), PrintName);
INSTANTIATE_TEST_SUITE_P(Toy, ScanSuite, ::testing::Values(Toy()), PrintName);
INSTANTIATE_TEST_SUITE_P(Toy, ObjectsSuite, ::testing::Values(Toy()), PrintName);
INSTANTIATE_TEST_SUITE_P(Toy, MappingsSuite, ::testing::Values(Toy()), PrintName);

}  // namespace
}  // namespace kvstore::testing
