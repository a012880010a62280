#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "tests/backend_suite/row_model.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/processes.h"

/// Random histories of all operations on rows. After each operation the store is compared with RowModel; in
/// between it is closed, killed and reopened, and its files are rearranged.
///
/// A history is cut into segments. Each runs in a process of its own, which ends with a clean close or with
/// kill -9, and sends the timestamps that the store has assigned to its parent. The parent never opens the
/// store: it repeats the segment on its model alone, and the next process inherits that model.
namespace kvstore::testing {
namespace {

constexpr uint64_t kDayMs = 24 * 3600 * 1000;

uint64_t NowMs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

/// Passes the timestamps that the store assigns from the child, which sees them, to the parent, which repeats
/// its steps.
class Assigned {
 public:
  virtual ~Assigned() = default;
  virtual uint64_t Pass(uint64_t timestamp) = 0;
};

class ToParent : public Assigned {
 public:
  explicit ToParent(int pipe) : pipe_(pipe) {}
  uint64_t Pass(uint64_t timestamp) override {
    if (::write(pipe_, &timestamp, sizeof(timestamp)) != sizeof(timestamp)) std::abort();
    return timestamp;
  }

 private:
  const int pipe_;
};

class FromChild : public Assigned {
 public:
  explicit FromChild(std::vector<uint64_t> timestamps) : timestamps_(std::move(timestamps)) {}
  uint64_t Pass(uint64_t) override { return next_ < timestamps_.size() ? timestamps_[next_++] : 0; }

 private:
  const std::vector<uint64_t> timestamps_;
  size_t next_ = 0;
};

/// One segment of a history, run on the store and the model, or on the model alone (`rows` and `backend` are
/// null). It makes the same random choices either way. Failures are failures of gtest.
class Segment {
 public:
  Segment(const UnderTest& under_test, RowModel& model, Random& random, Assigned& assigned, uint64_t base)
      : under_test_(under_test), model_(model), random_(random), assigned_(assigned), base_(base) {}

  void Run(Backend* backend, RowStore* rows, int operations) {
    backend_ = backend;
    rows_ = rows;
    for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) Step();
  }

 private:
  void Step() {
    const uint64_t choice = random_.Below(1000);
    if (choice < 350) return Put();
    if (choice < 400) return PutMany();
    if (choice < 470) return Delete();
    if (choice < 490) return DeleteMany();
    if (choice < 840) return Get();
    if (choice < 880) return GetMany();
    if (choice < 960) return Scan();
    if (choice < 995) return Disturb();
    Settings();
  }

  // ---- choices ----

  std::string Row() { return random_.HostileBytes(1, 2); }
  std::string Column() { return random_.HostileBytes(0, 2); }
  std::string Value() { return random_.HostileBytes(0, random_.OneIn(10) ? 300 : 4); }

  /// Chooses from few timestamps, so that they collide; with a time to live they are long expired, or far
  /// from it.
  uint64_t Timestamp() { return random_.OneIn(4) ? random_.Below(12) : base_ + random_.Below(12); }

  struct OwnedPut {
    std::string row;
    std::vector<std::string> bytes;
    std::vector<CellWrite> cells;
    std::string condition_column;
    std::string condition_value;
    WriteOptions options;
  };

  OwnedPut DrawPut() {
    OwnedPut put{.row = Row()};
    const size_t count = 1 + random_.Below(4);
    put.bytes.reserve(2 * count);
    for (size_t i = 0; i < count; ++i) {
      CellWrite cell;
      cell.column = put.bytes.emplace_back(Column());
      cell.value = put.bytes.emplace_back(Value());
      if (!random_.OneIn(3)) cell.timestamp = Timestamp();
      const auto same = [&cell](const CellWrite& other) {
        return other.column == cell.column && other.timestamp == cell.timestamp;
      };
      if (std::none_of(put.cells.begin(), put.cells.end(), same)) put.cells.push_back(cell);
    }
    return put;
  }

  void DrawCondition(OwnedPut& put) {
    if (!random_.OneIn(3)) return;
    put.condition_column = Column();
    put.options.condition = Condition{.column = put.condition_column};
    if (random_.OneIn(2)) {
      put.condition_value = Value();
      put.options.condition->equals = put.condition_value;
    }
  }

  DeleteOptions DrawDelete() {
    DeleteOptions options;
    switch (random_.Below(3)) {
      case 0:
        break;
      case 1:
        options.columns = {Column(), Column()};
        break;
      default:
        options.cells = {{Column(), Timestamp()}, {Column(), Timestamp()}};
    }
    return options;
  }

  template <typename Options>
  void DrawChoice(Options& options) {
    if (random_.OneIn(3)) options.columns = {Column(), Column(), Column()};
    options.versions = static_cast<uint32_t>(1 + random_.Below(4));
    if (random_.OneIn(3)) {
      options.time_range.start = Timestamp();
      options.time_range.end = options.time_range.start + 1 + random_.Below(12);
    }
    if (random_.OneIn(3)) options.max_bytes = 1 + random_.Below(60);
  }

  ReadOptions DrawRead() {
    ReadOptions options;
    DrawChoice(options);
    if (random_.OneIn(2)) options.limit = static_cast<uint32_t>(1 + random_.Below(4));
    return options;
  }

  // ---- operations ----

  /// Compares the outcome of a put with the model's, and carries it out on the model.
  void Expect(const OwnedPut& put, const absl::StatusOr<PutResult>* result) {
    const bool holds = !put.options.condition || model_.Holds(put.row, *put.options.condition, NowMs());
    if (result != nullptr) {
      ASSERT_EQ(result->ok(), holds) << result->status();
      if (!holds) {
        ASSERT_EQ(result->status().code(), put.options.condition->equals
                                               ? absl::StatusCode::kFailedPrecondition
                                               : absl::StatusCode::kAlreadyExists);
      }
    }
    if (!holds) return;
    const bool wanted =
        std::any_of(put.cells.begin(), put.cells.end(), [](const CellWrite& c) { return !c.timestamp; });
    uint64_t timestamp = 0;
    if (result != nullptr) {
      ASSERT_EQ((*result)->timestamp.has_value(), wanted);
    }
    if (wanted) timestamp = assigned_.Pass(result != nullptr ? *(*result)->timestamp : 0);
    model_.Put(put.row, put.cells, timestamp);
  }

  void Put() {
    OwnedPut put = DrawPut();
    DrawCondition(put);
    if (rows_ == nullptr) return Expect(put, nullptr);
    const auto result = rows_->Put(put.row, put.cells, put.options);
    Expect(put, &result);
  }

  void PutMany() {
    std::vector<OwnedPut> puts;
    for (size_t i = 1 + random_.Below(5); i > 0; --i) puts.push_back(DrawPut());
    for (OwnedPut& put : puts) DrawCondition(put);
    if (rows_ == nullptr) {
      for (const OwnedPut& put : puts) Expect(put, nullptr);
      return;
    }
    std::vector<RowWrite> writes;
    for (const OwnedPut& put : puts) writes.push_back({put.row, put.cells, put.options});
    const auto results = rows_->PutMany(writes);
    ASSERT_EQ(results.size(), puts.size());
    for (size_t i = 0; i < puts.size(); ++i) Expect(puts[i], &results[i]);
  }

  void Expect(const std::string& row, const DeleteOptions& options, const absl::Status* status) {
    const bool allowed = !options.cells || model_.spec.max_versions == 0;
    if (status != nullptr) {
      ASSERT_EQ(status->ok(), allowed) << *status;
    }
    if (allowed) model_.Delete(row, options);
  }

  void Delete() {
    const std::string row = Row();
    const DeleteOptions options = DrawDelete();
    if (rows_ == nullptr) return Expect(row, options, nullptr);
    const absl::Status status = rows_->Delete(row, options);
    Expect(row, options, &status);
  }

  void DeleteMany() {
    std::vector<std::string> keys;
    std::vector<DeleteOptions> options;
    for (size_t i = 1 + random_.Below(4); i > 0; --i) {
      keys.push_back(Row());
      options.push_back(DrawDelete());
    }
    std::vector<absl::Status> statuses;
    if (rows_ != nullptr) {
      std::vector<RowDelete> deletes;
      for (size_t i = 0; i < keys.size(); ++i) deletes.push_back({keys[i], options[i]});
      statuses = rows_->DeleteMany(deletes);
      ASSERT_EQ(statuses.size(), keys.size());
    }
    for (size_t i = 0; i < keys.size(); ++i)
      Expect(keys[i], options[i], rows_ != nullptr ? &statuses[i] : nullptr);
  }

  void Get() {
    const std::string row = Row();
    const ReadOptions options = DrawRead();
    // A backend may keep the answer when it is asked a second time, and answer by it the third time.
    const int times = random_.OneIn(4) ? 3 : 1;
    if (rows_ == nullptr) return;
    for (int i = 0; i < times; ++i) {
      const auto items = ReadPages(*rows_, row, options);
      ASSERT_OK(items);
      ASSERT_EQ(*items, model_.Get(row, options.columns, options.versions, options.time_range, NowMs()));
    }
  }

  void GetMany() {
    std::vector<std::string> keys;
    for (size_t i = 1 + random_.Below(5); i > 0; --i) keys.push_back(Row());
    const uint32_t versions = static_cast<uint32_t>(1 + random_.Below(3));
    if (rows_ == nullptr) return;
    std::vector<RowRead> reads;
    for (const std::string& key : keys) reads.push_back({key, {.versions = versions}});
    const auto pages = rows_->GetMany(reads);
    ASSERT_EQ(pages.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_OK(pages[i]);
      ASSERT_EQ(pages[i]->items, model_.Get(keys[i], std::nullopt, versions, {}, NowMs()));
    }
  }

  void Scan() {
    RowRange range;
    if (random_.OneIn(2)) range.start = random_.HostileBytes(0, 2);
    if (random_.OneIn(2)) range.end = random_.HostileBytes(0, 2);
    ScanOptions options;
    DrawChoice(options);
    const size_t pause = random_.OneIn(2) ? 1 + random_.Below(4) : 0;
    if (rows_ == nullptr || (!range.end.empty() && range.start >= range.end)) return;
    const auto scanned = ReadRange(under_test_, *rows_, range, options, pause);
    ASSERT_OK(scanned);
    const auto expected = model_.Scan(range, options, NowMs());
    ASSERT_EQ(scanned->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ((*scanned)[i].key, expected[i].key);
      ASSERT_EQ((*scanned)[i].items, expected[i].items)
          << "row " << ::testing::PrintToString(expected[i].key) << ", columns "
          << ::testing::PrintToString(options.columns) << ", " << options.versions << " versions, ["
          << options.time_range.start << ", " << options.time_range.end << "), " << options.max_bytes
          << " bytes, paused after " << pause << ", max_versions " << model_.spec.max_versions;
    }
  }

  void Disturb() {
    // A generator of its own, so that the parent need not know how many choices the backend makes.
    Random own(random_.Next());
    if (backend_ != nullptr) under_test_.disturb(*backend_, model_.spec, own);
  }

  /// Changes the settings, with a reclaim first: otherwise cells that were hidden and are shown again might
  /// be there or not.
  void Settings() {
    if (backend_ != nullptr) {
      ASSERT_OK(backend_->Reclaim(model_.spec, nullptr));
    }
    model_.Reclaim(NowMs());
    constexpr std::array<uint32_t, 4> kMaxVersions = {0, 1, 2, 3};
    model_.spec.max_versions = kMaxVersions[random_.Below(kMaxVersions.size())];
    model_.spec.ttl_ms = random_.OneIn(2) ? 0 : kDayMs;
    if (backend_ != nullptr) {
      ASSERT_OK(backend_->AlterDataset(model_.spec));
    }
  }

  const UnderTest& under_test_;
  RowModel& model_;
  Random& random_;
  Assigned& assigned_;
  const uint64_t base_;
  Backend* backend_ = nullptr;
  RowStore* rows_ = nullptr;
};

TEST_P(HistorySuite, IsThatOfASimpleModel) {
  const TempDir dir;
  const uint64_t operations = Rounds("KV_TEST_OPERATIONS", GetParam().operations);
  constexpr int kSegment = 2000;
  const uint64_t base = NowMs();
  Random random(Seed("history"));
  RowModel model({.name = "history",
                  .backend = "test",
                  .max_versions = 2,
                  .engine = GetParam().engine,
                  .incarnation = 1});
  for (uint64_t done = 0; done < operations; done += kSegment) {
    const bool first = done == 0;
    const bool killed = random.OneIn(2);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = Fork([&] {
      ::close(ends[0]);
      ToParent assigned(ends[1]);
      std::vector<DatasetSpec> known;
      if (!first) known.push_back(model.spec);
      auto backend = GetParam().open(dir.path(), known);
      EXPECT_OK(backend);
      if (first) {
        EXPECT_OK((*backend)->CreateDataset(model.spec));
      }
      auto rows = (*backend)->OpenRows(model.spec);
      EXPECT_OK(rows);
      if (::testing::Test::HasFailure()) return 1;
      Segment(GetParam(), model, random, assigned, base).Run(backend->get(), rows->get(), kSegment);
      if (::testing::Test::HasFailure()) return 1;
      if (killed) ::raise(SIGKILL);
      rows->reset();
      backend->reset();
      return 0;
    });
    ::close(ends[1]);
    std::vector<uint64_t> timestamps;
    uint64_t timestamp = 0;
    while (::read(ends[0], &timestamp, sizeof(timestamp)) == sizeof(timestamp))
      timestamps.push_back(timestamp);
    ::close(ends[0]);
    const Exit exit = Wait(child);
    ASSERT_EQ(exit.signal, killed ? SIGKILL : 0) << "after " << done << " operations";
    if (!killed) {
      ASSERT_EQ(exit.code, 0) << "after " << done << " operations";
    }
    FromChild assigned(std::move(timestamps));
    Segment(GetParam(), model, random, assigned, base).Run(nullptr, nullptr, kSegment);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace kvstore::testing
