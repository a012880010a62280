#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend_api/backend.h"
#include "backend_api/outcome.h"
#include "backend_api/validate.h"
#include "catalog/catalog.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/kvstore.h"
#include "router/batch.h"
#include "router/catalog_keeper.h"
#include "router/dataset_directory.h"

namespace kvstore {

/// The KVStore in this process. It checks arguments, finds the dataset's store (DatasetDirectory), opens and
/// seals markers, and calls the backend. CatalogKeeper makes and changes the datasets.
///
/// When a backend refuses a call because its dataset migrates (backend_api/outcome.h), the caller does not
/// see that: the call waits, and is retried on the backend that the catalog names by then, until its deadline
/// or, without one, for kMaxMigrationWait. It waits in its thread; with CallLimits::waits false it fails at
/// once instead.
///
/// Thread-safe.
class Router : public KVStore {
 public:
  using Backends = CatalogKeeper::Backends;
  using Clock = CallLimits::Clock;
  using Where = DatasetDirectory::Where;

  /// How long a call without a deadline waits for a dataset that migrates.
  static constexpr std::chrono::seconds kMaxMigrationWait{10};
  /// How long such a call waits at most before it is retried.
  static constexpr std::chrono::milliseconds kMigrationRetryInterval = CatalogKeeper::kRetryInterval;

  /// Opens every dataset of the catalog, and finishes creates and drops that a crash cut short. Takes
  /// ownership of catalog and backends. If the catalog is shared, a dataset that cannot be opened here does
  /// not fail this; its calls fail and say why.
  ///
  /// contents         the catalog's contents, as LoadOrCopy returned them.
  /// default_backend  the backend for datasets whose creator names none; must be one of `backends`.
  /// fleet            the ledger of the fleet's operators; null: they use the catalog's.
  static absl::StatusOr<std::unique_ptr<Router>> Open(std::unique_ptr<Catalog> catalog,
                                                      const CatalogContents& contents, Backends backends,
                                                      std::string default_backend,
                                                      std::unique_ptr<Ledger> fleet = nullptr);
  /// As above, and loads the catalog.
  static absl::StatusOr<std::unique_ptr<Router>> Open(std::unique_ptr<Catalog> catalog, Backends backends,
                                                      std::string default_backend);
  /// Where calls on a dataset go; nothing for a dataset that is not known.
  std::optional<Where> Locate(std::string_view dataset) const { return directory().Locate(dataset); }

  /// The catalog, the backends and the ledger, for migrations and operators.
  CatalogKeeper& keeper() { return keeper_; }

  /// Until when a call that fails because its dataset migrates is to be retried, as far as its deadline
  /// allows; for callers that do not wait in their thread (CallLimits::waits), and retry calls themselves.
  ///
  /// since      when it failed so for the first time.
  /// migrating  the error (IsMigrating).
  static Clock::time_point MigrationWaitDeadline(Clock::time_point since, const absl::Status& migrating);

  /// The first error of Backend::CheckWrites; OK if all backends can be written to.
  absl::Status CheckWrites();

  // The methods of KVStore.
#define KV_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  class Cursor;

  Router(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend,
         std::unique_ptr<Ledger> fleet)
      : keeper_(std::move(catalog), std::move(backends), std::move(default_backend), std::move(fleet)) {}

  const DatasetDirectory& directory() const { return keeper_.directory(); }

  /// Finds the dataset and returns `call(const ServedDataset&)`, a Status or StatusOr. Retries while the
  /// dataset migrates.
  ///
  /// check  `check(const ServedDataset&)` returns the Status of the call's arguments. Called once, before the
  ///        call waits, and again only if another dataset has that name by then.
  template <typename Check, typename Call>
  auto Route(std::string_view name, Shape shape, const Check& check, const Call& call)
      -> std::invoke_result_t<Call, const ServedDataset&>;
  /// Route for a batch: `send(const ServedDataset&, std::span<const Entry>)` returns one answer for each
  /// entry, in order. Entries that were refused because the dataset migrates are sent again. `check(const
  /// ServedDataset&, const Entry&)` returns the Status of an entry; called as Route's.
  template <typename Answer, typename Entry, typename Check, typename Send>
  absl::StatusOr<std::vector<Answer>> RouteBatch(std::string_view name, Shape shape,
                                                 std::span<const Entry> entries, const Check& check,
                                                 const Send& send);
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }
  /// ListMapping, which also sets the incarnation of the dataset that it found.
  absl::StatusOr<MappingPage> List(std::string_view dataset, uint64_t from, const MappingListOptions& options,
                                   uint64_t& incarnation);
  /// Reads the objects that entries of a mapping point to, from whichever datasets they are in.
  std::vector<JoinedObject> Join(std::span<const MappingEntry> entries);
  /// Waits before a call is retried that failed with `migrating`. OK: retry it; else the error for the
  /// caller, who may not wait, or not any longer.
  ///
  /// since  when the call failed so for the first time.
  absl::Status WaitForMigration(Clock::time_point since, const absl::Status& migrating);

  /// Returns the error of an attempt after one that failed with `migrating`: if its time was up, with what it
  /// waited for.
  static absl::Status AfterWait(const absl::Status& error, const absl::Status& migrating);

  CatalogKeeper keeper_;
};

// ---- implementation ----

template <typename Check, typename Call>
auto Router::Route(std::string_view name, Shape shape, const Check& check, const Call& call)
    -> std::invoke_result_t<Call, const ServedDataset&> {
  using Result = std::invoke_result_t<Call, const ServedDataset&>;
  std::optional<uint64_t> checked;  // the incarnation of the dataset for which the arguments were checked
  const auto attempt = [&]() -> Result {
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto found = directory().Find(name, shape);
    if (!found.ok()) return found.status();
    if (checked != found->dataset->spec.incarnation) {
      if (absl::Status status = check(*found->dataset); !status.ok()) return status;
      checked = found->dataset->spec.incarnation;
    }
    return call(*found->dataset);
  };
  // Every path returns this one variable, so that a result, which may be large, is never moved.
  Result result = attempt();
  if (result.ok() || !IsMigrating(StatusOf(result))) [[likely]]
    return result;
  const auto since = Clock::now();
  for (;;) {
    const absl::Status migrating = StatusOf(result);
    if (auto status = WaitForMigration(since, migrating); !status.ok()) {
      result = std::move(status);
      return result;
    }
    result = attempt();
    if (result.ok()) return result;
    if (!IsMigrating(StatusOf(result))) {
      result = AfterWait(StatusOf(result), migrating);
      return result;
    }
  }
}

template <typename Answer, typename Entry, typename Check, typename Send>
absl::StatusOr<std::vector<Answer>> Router::RouteBatch(std::string_view name, Shape shape,
                                                       std::span<const Entry> entries, const Check& check,
                                                       const Send& send) {
  std::vector<absl::Status> problems;  // of each entry, which are checked before any waits
  const auto check_all = [&](const ServedDataset& dataset) -> absl::Status {
    if (auto status = ValidateBatch(entries.size()); !status.ok()) return status;
    problems.clear();
    problems.reserve(entries.size());
    for (const Entry& entry : entries) problems.push_back(check(dataset, entry));
    return absl::OkStatus();
  };
  std::vector<Answer> answers;
  std::vector<size_t> places;  // the indices of entries that were refused because the dataset migrates
  auto sent = Route(name, shape, check_all, [&](const ServedDataset& dataset) -> absl::Status {
    const auto send_valid = [&](std::span<const Entry> some, std::span<const absl::Status> found) {
      return SendValid<Answer>(some, found,
                               [&](std::span<const Entry> valid) { return send(dataset, valid); });
    };
    if (answers.empty()) {
      answers = send_valid(entries, problems);
      for (size_t i = 0; i < answers.size(); ++i) {
        if (IsMigrating(StatusOf(answers[i]))) places.push_back(i);
      }
    } else {
      std::vector<Entry> again;
      std::vector<absl::Status> their_problems;  // another dataset may have the name by now
      for (const size_t place : places) {
        again.push_back(entries[place]);
        their_problems.push_back(problems[place]);
      }
      std::vector<Answer> some = send_valid(again, their_problems);
      std::vector<size_t> still;
      for (size_t i = 0; i < places.size(); ++i) {
        if (IsMigrating(StatusOf(some[i]))) still.push_back(places[i]);
        answers[places[i]] = std::move(some[i]);
      }
      places = std::move(still);
    }
    return places.empty() ? absl::OkStatus() : StatusOf(answers[places.front()]);
  });
  if (answers.empty() && !sent.ok()) return sent;
  // Entries that were refused until the end keep their answers, unless the call ran out of time.
  for (const size_t place : places) {
    if (!IsMigrating(sent)) answers[place] = sent;
  }
  return answers;
}

}  // namespace kvstore
