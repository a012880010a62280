#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "tests/hostile/hostile.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

/// `kv` against a server that answers whatever it likes.
namespace kvstore::testing {
namespace {

/// A control character of each kind that terminals obey: ESC, one of C1, and one that reverses the direction
/// of text.
const std::string kObeyed = "x\x1b[31m\u009b31m\u202e";

class HostileKv : public ::testing::Test {
 protected:
  Output Kv(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {KV_PROGRAM, "--server", server_.address()});
    return RunProgram(arguments);
  }
  /// Expects that a terminal obeys nothing of what kv has printed.
  static void ExpectHarmless(const Output& output) {
    const std::string text = output.out + output.err;
    for (const char* obeyed : {"\x1b", "\u009b", "\u202e"}) {
      EXPECT_EQ(text.find(obeyed), std::string::npos) << ::testing::PrintToString(text);
    }
    EXPECT_NE(text.find("31m"), std::string::npos) << text;
  }
  static void ExpectError(const Output& output, const std::string& text) {
    EXPECT_EQ(output.code, 1) << output.out << output.err;
    EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
  }

  const TempDir dir_;
  Hostile server_;
};

TEST_F(HostileKv, NoTerminalObeysWhatItIsSent) {
  server_.list_datasets = [](auto&, auto& answer) {
    answer.add_datasets()->set_name(kObeyed);
    answer.mutable_datasets(0)->set_backend(kObeyed);
  };
  ExpectHarmless(Kv({"dataset", "list"}));
  ExpectHarmless(Kv({"dataset", "list", "--json"}));
  server_.get_row = [](auto&, auto& answer) {
    answer.add_items()->set_column(kObeyed);
    answer.mutable_items(0)->add_cells()->set_value(kObeyed);
    answer.set_marker(kObeyed);
  };
  ExpectHarmless(Kv({"get", "d", "r"}));
  ExpectHarmless(Kv({"get", "d", "r", "--json"}));
  server_.get_objects = [](auto& stream) {
    v1::GetObjectsResponse found;
    v1::Object& object = *found.add_results()->mutable_object();
    object.set_id(1);
    object.set_data("{\"a\": \"" + kObeyed.substr(kObeyed.find("\u009b")) + "\"}");
    stream.Write(found);
  };
  ExpectHarmless(Kv({"object", "get", "d", "1"}));
  ExpectHarmless(Kv({"object", "get", "d", "1", "--json"}));
  server_.migrate = [](auto&, auto& answer) {
    answer.set_status(R"({"dataset": "\u001b31m\u009b", "phase": "\u202e", "next": ["\u001b"]})");
  };
  ExpectHarmless(Kv({"migrate", "status", "d"}));
}

TEST_F(HostileKv, AnAnswerOfAnotherFormIsAnError) {
  for (const char* status : {R"({"phase": 5})", "[]", R"("text")", "{"}) {
    server_.migrate = [&](auto&, auto& answer) { answer.set_status(status); };
    const Output output = Kv({"migrate", "status", "d"});
    EXPECT_EQ(output.code, 1) << status << output.out << output.err;
  }
}

TEST_F(HostileKv, ATimeThatIsGivenHoldsForAllOfAScanAndOfAllPages) {
  server_.scan_rows = [](auto& stream) {
    v1::ScanRowsResponse rows;
    rows.add_rows()->set_key("r");
    rows.mutable_rows(0)->set_continues(true);
    while (stream.Write(rows)) {
    }
  };
  ExpectError(Kv({"scan", "d", "--timeout-ms", "200"}), "DEADLINE_EXCEEDED");
  std::atomic<int> pages{0};
  server_.get_row = [&](auto&, auto& answer) {
    answer.add_items()->add_cells();
    answer.set_marker(std::to_string(++pages));
  };
  ExpectError(Kv({"get", "d", "r", "--all", "--timeout-ms", "200"}), "DEADLINE_EXCEEDED");
  EXPECT_GT(pages, 1);
}

TEST_F(HostileKv, ATimeThatIsGivenHoldsForAnExportFromAServerThatFallsSilent) {
  server_.get_dataset = [](auto&, auto& answer) {
    answer.mutable_dataset()->set_name("d");
    answer.mutable_dataset()->set_shape(v1::SHAPE_ROWS);
  };
  std::promise<void> ended;
  const auto end = ended.get_future().share();
  server_.scan_rows = [end](auto& stream) {
    v1::ScanRowsResponse rows;
    rows.add_rows()->set_key("r");
    stream.Write(rows);
    end.wait_for(std::chrono::seconds(30));
  };
  const std::string file = dir_ / "out";
  ExpectError(Kv({"export", "d", "--to", file, "--timeout-ms", "500"}), "DEADLINE_EXCEEDED");
  ended.set_value();
  EXPECT_FALSE(std::ifstream(file).good());
}

TEST_F(HostileKv, ADryRunSaysThatNothingWasDone) {
  server_.migrate = [](auto&, auto& answer) {
    answer.set_status(R"({"dataset": "d", "phase": "created", "source": "rocksdb", "target": "mysql"})");
  };
  const Output created = Kv({"migrate", "create", "d", "--to", "mysql", "--dry-run"});
  EXPECT_EQ(created.out,
            "nothing was created; without --dry-run a migration of d from rocksdb to mysql would be "
            "recorded, and kv "
            "migrate start d would begin it\n")
      << created.err;
  const Output started = Kv({"migrate", "start", "d", "--dry-run"});
  EXPECT_EQ(started.out.find("nothing was changed; kv migrate start d is possible"), 0u) << started.out;
  EXPECT_NE(started.out.find("phase         created"), std::string::npos) << started.out;
  const Output json = Kv({"--json", "migrate", "create", "d", "--to", "mysql", "--dry-run"});
  EXPECT_NE(json.out.find(R"("dry_run":true)"), std::string::npos) << json.out;
}

TEST_F(HostileKv, ATokenIsNeverShown) {
  server_.get_row = [](auto&, auto&) {};
  const std::string file = dir_ / "token";
  std::ofstream(file) << "\xEF\xBB\xBFkv_secret\n";
  const Output good = Kv({"--token-file", file, "get", "d", "r"});
  EXPECT_EQ(good.code, 0) << good.err;
  std::ofstream(file) << "kv_\x01secret\n";
  const Output bad = Kv({"--token-file", file, "get", "d", "r"});
  ExpectError(bad, "INVALID_ARGUMENT: token: byte 4");
  EXPECT_EQ(bad.err.find("secret"), std::string::npos) << bad.err;
  std::ofstream(file) << "kv_secret\n";
  const Output elsewhere =
      RunProgram({KV_PROGRAM, "--server", "192.0.2.1:7400", "--token-file", file, "get", "d", "r"});
  ExpectError(elsewhere, "is not encrypted");
  const Output said = RunProgram({KV_PROGRAM, "--server", "192.0.2.1:7400", "--token-file", file,
                                  "--plain-token", "--timeout-ms", "1", "get", "d", "r"});
  ExpectError(said, "server 192.0.2.1:7400");
}

}  // namespace
}  // namespace kvstore::testing
