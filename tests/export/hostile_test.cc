#include <fcntl.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "export/child_program.h"
#include "export/parquet_writer.h"
#include "kvstore_api/call_scope.h"
#include "tests/export/export_fixture.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"

/// Programs in place of kv-parquet that fail and lie; and bytes for kv-parquet that kv would never send.
namespace kvstore {
namespace {

using absl::StatusCode;
using exports::ParquetLines;
using exports::ParquetWriter;
using testing::ExportTest;
using testing::FailsWith;
using testing::FakeSource;
using ::testing::IsEmpty;
using testing::Output;
using testing::Random;
using testing::RowUnitOf;
using testing::RunProgram;
using testing::Seed;

class HostileProgram : public ExportTest {
 protected:
  /// Exports something by a program of the test's own.
  absl::Status ExportBy(const std::string& script) {
    // More than a socket holds, so that the program's end is noticed in the middle, too.
    FakeSource::Page units;
    for (int i = 0; i < 40; ++i) {
      units.push_back(
          RowUnitOf("row" + std::to_string(100 + i), "c", {{1, std::string(size_t{1} << 20, 'v')}}));
    }
    FakeSource source = FakeSource::Of(std::move(units));
    exports::ExportOptions options = Options();
    options.program = Script(script);
    const auto made = exports::ExportDataset(source, Request(Shape::kRows), *blobs_, options);
    EXPECT_THAT(Blobs(), IsEmpty()) << script;
    return made.status();
  }
};

TEST_F(HostileProgram, ItsErrorIsTold) {
  EXPECT_THAT(ExportBy("echo 'the moon is full' >&2; exit 1"),
              FailsWith(StatusCode::kInvalidArgument, "kv-parquet: the moon is full"));
  EXPECT_THAT(ExportBy("cat >/dev/null; echo 'at the end' >&2; exit 7"),
              FailsWith(StatusCode::kInvalidArgument, "kv-parquet: at the end"));
  EXPECT_THAT(ExportBy("exit 7"),
              FailsWith(StatusCode::kInvalidArgument, "kv-parquet has ended with exit code 7"));
  EXPECT_THAT(ExportBy("kill -9 $$"), FailsWith(StatusCode::kUnavailable, "was ended by signal 9"));
  const absl::Status long_one = ExportBy("yes long | head -c 1000000 >&2; exit 1");
  EXPECT_LT(long_one.message().size(), 3000u);
}

TEST_F(HostileProgram, WhatIsNoParquetIsRefused) {
  const auto refused = FailsWith(StatusCode::kDataLoss, "is no Parquet file");
  EXPECT_THAT(ExportBy("cat >/dev/null"), refused);
  EXPECT_THAT(ExportBy("cat >/dev/null; echo garbage"), refused);
  EXPECT_THAT(ExportBy("cat >/dev/null; printf PAR1PAR1"), refused);
  EXPECT_THAT(ExportBy("cat >/dev/null; printf 'PAR1 without its end'"), refused);
  EXPECT_THAT(ExportBy("exit 0"), FailsWith(StatusCode::kDataLoss, "it has ended before its input did"));
  EXPECT_THAT(ExportBy("exec <&-; exec true"), FailsWith(StatusCode::kDataLoss, "before its input did"));
}

TEST_F(HostileProgram, OutputWithoutEndIsBounded) {
  EXPECT_THAT(ExportBy("cat >/dev/null & exec yes"),
              FailsWith(StatusCode::kResourceExhausted, "which is the most allowed"));
}

TEST_F(HostileProgram, OneThatHangsEndsWithTheCall) {
  const auto ends_in_time = [this](const std::string& script) {
    const CallScope scope(std::chrono::milliseconds(300));
    EXPECT_THAT(ExportBy(script), FailsWith(StatusCode::kDeadlineExceeded, "")) << script;
  };
  ends_in_time("exec sleep 1000");
  ends_in_time("cat >/dev/null; exec sleep 1000");
  ends_in_time("cat >/dev/null; exec >&-; exec sleep 1000");
}

TEST_F(HostileProgram, OneThatIsNotThereIsNamed) {
  ::setenv("KV_PARQUET", (dir_ / "none").c_str(), 1);
  EXPECT_THAT(exports::FindParquetProgram(), FailsWith(StatusCode::kFailedPrecondition, "none is not there"));
  EXPECT_THAT(ParquetLines::Open(0, {"rows"}),
              FailsWith(StatusCode::kFailedPrecondition, "none is not there"));
  std::ofstream(dir_ / "text") << "no program";
  std::filesystem::permissions(dir_ / "text", std::filesystem::perms::owner_all);
  EXPECT_THAT(exports::ChildProgram::Start({(dir_ / "text").string()}, 0, 1),
              FailsWith(StatusCode::kUnavailable, "cannot start"));
}

TEST_F(HostileProgram, LinesThatBreakOffAreAnError) {
  const auto lines_of = [this](const std::string& script, absl::Status& end) {
    Script(script);
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const auto lines = ParquetLines::Open(file, {"rows"});
    ::close(file);
    EXPECT_OK(lines);
    auto read = ReadLines((*lines)->file());
    end = (*lines)->Finish();
    return read;
  };
  absl::Status end;
  EXPECT_THAT(lines_of("echo '{}'; echo 'page 7 is damaged' >&2; exit 1", end), ::testing::ElementsAre("{}"));
  EXPECT_THAT(end, FailsWith(StatusCode::kInvalidArgument, "kv-parquet: page 7 is damaged"));
  EXPECT_THAT(lines_of("echo \"$@\"", end), ::testing::ElementsAre("lines rows"));
  EXPECT_OK(end);
  lines_of("kill -11 $$", end);
  EXPECT_THAT(end, FailsWith(StatusCode::kUnavailable, "was ended by signal 11"));
}

/// The real kv-parquet, with what kv would never send.
class HostileInput : public ExportTest {
 protected:
  void SetUp() override { SKIP_WITHOUT_PARQUET(); }

  static Output Write(const std::string& input) { return RunProgram({KV_PARQUET_PROGRAM, "write"}, input); }
  /// Runs it, and expects that it refuses the input and says why.
  static void Refused(const std::string& input, const std::string& problem) {
    const Output output = Write(input);
    EXPECT_EQ(output.code, 1) << problem;
    EXPECT_NE(output.err.find(problem), std::string::npos) << output.err;
    EXPECT_FALSE(output.out.ends_with("PAR1")) << problem;
  }
  static std::string Number(uint32_t number) {
    return {reinterpret_cast<const char*>(&number), sizeof(number)};
  }
  /// A table of one batch, whole.
  static std::string Table() {
    const pipe::Schema schema = {.columns = {{"b", pipe::ColumnType::kBytes, true},
                                             {"t", pipe::ColumnType::kText, true},
                                             {"i", pipe::ColumnType::kInt32, true},
                                             {"d", pipe::ColumnType::kDouble, true},
                                             {"f", pipe::ColumnType::kBool, true}},
                                 .notes = {{"kvstore.form", "wide"}}};
    pipe::BatchBuilder rows(schema);
    for (int i = 0; i < 12; ++i) {
      i % 2 == 0 ? rows.AddBytes(0, std::string(static_cast<size_t>(i), 'b')) : rows.AddNull(0);
      i % 3 == 0 ? rows.AddNull(1) : rows.AddBytes(1, "text");
      rows.AddNumber(2, i);
      rows.AddDouble(3, i / 2.0);
      rows.AddNumber(4, i % 2);
      rows.EndRow();
    }
    std::string table = pipe::BeginFrame(schema);
    for (const std::string_view part : rows.Frame()) table += part;
    return table + pipe::EndFrame(12);
  }
};

TEST_F(HostileInput, IsRefusedAndSaidWhy) {
  const std::string begin = pipe::BeginFrame({.columns = {{"c", pipe::ColumnType::kText}}, .notes = {}});
  ASSERT_EQ(Write(Table()).code, 0);
  Refused("", "is no table");
  Refused("KVTABLE", "is no table");
  Refused("GET / HTTP/1.1\r\n\r\n", "is no table");
  Refused(std::string(pipe::kMagic), "is cut off");
  Refused(begin, "is cut off");
  Refused(std::string(pipe::kMagic) + Number(9) + Number(0), "unknown kind 9");
  Refused(std::string(pipe::kMagic) + Number(1) + Number(0xFFFFFFFF), "the limit is");
  Refused(std::string(pipe::kMagic) + Number(2) + Number(0), "is not that of its schema");
  Refused(std::string(pipe::kMagic) + Number(1) + Number(0), "has no columns");
  Refused(begin + begin.substr(pipe::kMagic.size()), "a second schema");
  Refused(begin + pipe::EndFrame(1), "the number of its rows");
  Refused(begin + pipe::EndFrame(0) + "x", "bytes follow");
  Refused(pipe::BeginFrame({.columns = {{"\xFF"}}, .notes = {}}), "is not UTF-8");
}

TEST_F(HostileInput, TextThatIsNotUtf8IsRefused) {
  const pipe::Schema schema = {.columns = {{"c", pipe::ColumnType::kText}}, .notes = {}};
  pipe::BatchBuilder rows(schema);
  rows.AddBytes(0, "\xFF");
  rows.EndRow();
  std::string table = pipe::BeginFrame(schema);
  for (const std::string_view part : rows.Frame()) table += part;
  Refused(table + pipe::EndFrame(1), "UTF8");
}

TEST_F(HostileInput, ATableThatIsCutOffIsNoFile) {
  const std::string table = Table();
  for (size_t size = 0; size < table.size(); size += 1 + table.size() / 40) {
    const Output output = Write(table.substr(0, size));
    EXPECT_EQ(output.code, 1) << size;
    EXPECT_FALSE(output.out.ends_with("PAR1")) << size;
  }
}

TEST_F(HostileInput, AnyBytesAreRefusedOrWritten) {
  Random random(Seed("HostileInput.AnyBytesAreRefusedOrWritten"));
  const std::string table = Table();
  for (int i = 0; i < 60; ++i) {
    std::string changed = table;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) {
      changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    }
    const Output output = Write(changed);
    EXPECT_TRUE(output.code == 0 || output.code == 1) << output.code << " " << output.err;
    EXPECT_EQ(output.out.ends_with("PAR1"), output.code == 0);
  }
}

TEST_F(HostileInput, AFileThatIsDamagedOrNoneIsAnError) {
  const std::string good = Write(Table()).out;
  Random random(Seed("HostileInput.AFileThatIsDamagedOrNoneIsAnError"));
  const auto lines = [&](const std::string& bytes) {
    std::ofstream(dir_ / "file") << bytes;
    const int file = ::open((dir_ / "file").c_str(), O_RDONLY | O_CLOEXEC);
    const auto opened = ParquetLines::Open(file, {"points"});
    ::close(file);
    EXPECT_OK(opened);
    ReadLines((*opened)->file());
    return (*opened)->Finish();
  };
  EXPECT_OK(lines(good));
  EXPECT_FALSE(lines("").ok());
  EXPECT_FALSE(lines("PAR1PAR1PAR1").ok());
  for (size_t size = 0; size < good.size(); size += 1 + good.size() / 20)
    EXPECT_FALSE(lines(good.substr(0, size)).ok());
  // Whatever becomes of the program, this one only hears of it.
  for (int i = 0; i < 40; ++i) {
    std::string changed = good;
    changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    lines(changed).IgnoreError();
  }
  const auto not_a_file = [&](int file) {
    const auto opened = ParquetLines::Open(file, {"points"});
    EXPECT_OK(opened);
    ReadLines((*opened)->file());
    return (*opened)->Finish();
  };
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[1]);
  EXPECT_FALSE(not_a_file(ends[0]).ok());
  ::close(ends[0]);
}

TEST_F(HostileInput, ADocumentIsOneLineWhateverItHas) {
  const pipe::Schema schema = {
      .columns = {{"id", pipe::ColumnType::kInt64}, {"data", pipe::ColumnType::kBytes}}, .notes = {}};
  pipe::BatchBuilder rows(schema);
  for (const char* data : {"{}", "1}\n{\"id\":\"2\",\"data\":{}", "\n\n", "\xFF"}) {
    rows.AddNumber(0, 1);
    rows.AddBytes(1, data);
    rows.EndRow();
  }
  std::string table = pipe::BeginFrame(schema);
  for (const std::string_view part : rows.Frame()) table += part;
  std::ofstream(dir_ / "objects.parquet") << Write(table + pipe::EndFrame(4)).out;
  const int file = ::open((dir_ / "objects.parquet").c_str(), O_RDONLY | O_CLOEXEC);
  const auto lines = ParquetLines::Open(file, {"objects"});
  ::close(file);
  ASSERT_OK(lines);
  EXPECT_EQ(ReadLines((*lines)->file()).size(), 4u);
  EXPECT_OK((*lines)->Finish());
}

TEST_F(HostileInput, WrongArgumentsAreWrongUsage) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"read"},
                                                          {"write", "x"},
                                                          {"lines"},
                                                          {"lines", "cells"},
                                                          {"lines", "rows", "--time"},
                                                          {"lines", "rows", "--time", "x"},
                                                          {"lines", "rows", "--what", "x"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), KV_PARQUET_PROGRAM);
    const Output output = RunProgram(command);
    EXPECT_EQ(output.code, 2);
    EXPECT_NE(output.err.find("kv-parquet lines FORM"), std::string::npos);
  }
}

}  // namespace
}  // namespace kvstore
