#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/shardops/move_fixture.h"
#include "tests/support/processes.h"

namespace kvstore::testing {

/// Moves that stop half-way, and an operator who goes on from there with the program.
class StoppedMoveTest : public MoveTest {
 protected:
  /// Rows "0" to "39" of `events` are there from the beginning.
  static constexpr int kWritten = 40;

  StoppedMoveTest() {
    first_.WriteConfig(dir_ / "kv.json");
    for (int row = 0; row < kWritten; ++row) EXPECT_OK(Put(row));
  }

  absl::Status Put(int row) {
    const CellWrite cell{"c", "v", std::nullopt};
    return store_->PutRow("events", std::to_string(row), {&cell, 1}, {}).status();
  }
  void ExpectAll() {
    for (int row = 0; row < kWritten; ++row) {
      const auto found = store_->GetRow("events", std::to_string(row), {});
      ASSERT_OK(found.status());
      EXPECT_EQ(found->items.size(), 1u) << row;
    }
  }
  /// Begins a move of kRows whose process dies at this point.
  void MoveUntil(std::string_view point, const shardops::Pair& to) {
    SetFailPointHook([point](std::string_view name) {
      if (name == point) throw Died();
    });
    EXPECT_THROW(Move(kRows, to, {.hold_writes = true}).IgnoreError(), Died);
    SetFailPointHook(nullptr);
  }
  /// Runs the program with this fleet's configuration.
  Output Kv(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {KV_PROGRAM, "--config", (dir_ / "kv.json").string()});
    return RunProgram(arguments, "");
  }
};

}  // namespace kvstore::testing
