#include "cli/parquet_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "assembly/open_router.h"
#include "base/advice.h"
#include "cli/backup_place.h"
#include "cli/escape.h"
#include "cli/export_place.h"
#include "cli/progress.h"
#include "cli/restored_store.h"
#include "cli/table.h"
#include "export/change_row_maker.h"
#include "export/changes_source.h"
#include "export/export.h"
#include "export/parquet_program.h"

namespace kvstore::cli {
namespace {

using exports::ExportRequest;
using exports::ExportSource;
using exports::Manifest;

/// Opens a store in this process. Throws Failure.
std::unique_ptr<Router> OpenOwn(const OpenOptions& options) {
  auto router = OpenRouter(options);
  if (absl::IsUnavailable(router.status())) {
    throw Failure{
        Advise(router.status(),
               "if a server has the store open, export through it with --server ADDR, or from its backup "
               "with --from URL")};
  }
  return OrFail(std::move(router));
}

/// The store whose dataset is exported.
class OpenedStore {
 public:
  OpenedStore(const ParquetExport& told, const Globals& globals) {
    if (told.from_backup) {
      BackupSource from = told.from;
      restored_ = std::make_unique<RestoredStore>(globals, from, told.at_ms);
      router_ = &restored_->router();
      as_of_ms_ = restored_->as_of_ms();
    } else if (!globals.server.empty()) {
      client_ = globals.OpenStore(false);
    } else {
      OpenOptions options = globals.StoreOptions();
      options.create_if_missing = false;
      own_ = OpenOwn(options);
      router_ = own_.get();
    }
  }

  KVStore& store() { return router_ != nullptr ? *router_ : *client_; }

  /// Throws Failure.
  std::unique_ptr<ExportSource> Read(const DatasetSpec& spec, const exports::TableOptions& options,
                                     size_t parts) {
    if (router_ != nullptr) {
      auto snapshot = ReadSnapshot(spec, parts);
      // A dataset on another server, as a backend, has no snapshots.
      if (!absl::IsUnimplemented(snapshot.status())) return OrFail(std::move(snapshot));
    }
    return OrFail(exports::OpenScans(store(), spec, options, parts));
  }

 private:
  absl::StatusOr<std::unique_ptr<ExportSource>> ReadSnapshot(const DatasetSpec& spec, size_t parts) {
    CatalogKeeper& keeper = router_->keeper();
    const auto backend = keeper.FindBackend(spec.backend);
    if (!backend.ok()) return backend.status();
    auto reader = (*backend)->OpenUnits(spec);
    if (!reader.ok()) return reader.status();
    reader_ = *std::move(reader);
    return exports::OpenSnapshot(*reader_, spec, as_of_ms_, parts);
  }

  std::unique_ptr<RestoredStore> restored_;
  std::unique_ptr<KVStore> client_;
  std::unique_ptr<Router> own_;
  Router* router_ = nullptr;  // null: the store is behind a server
  std::optional<uint64_t> as_of_ms_;
  std::unique_ptr<UnitReader> reader_;
};

/// Returns the request for an export of a dataset of this shape. Throws Failure.
ExportRequest RequestOf(const ParquetExport& told, const Globals& globals, Shape shape) {
  ExportRequest request{
      .dataset = told.dataset, .shape = shape, .options = {}, .at_ms = told.at_ms, .since = told.since};
  request.options.text = told.text;
  if (told.from_backup) request.from = told.from.id.empty() ? "backup" : told.from.id;
  for (const std::string& text : told.columns) {
    exports::TableColumn column = exports::ParseTableColumn(text, shape);
    column.name = globals.Bytes(column.name);
    request.options.columns.push_back(std::move(column));
  }
  OrFail(exports::CheckTableOptions(request.options, shape));
  if (!request.since.empty()) OrFail(exports::CheckChangeOptions(request.options, shape));
  return request;
}

/// Returns the token from which an export of changes can go on later; empty if none can. Throws Failure.
std::string TokenAfter(const ParquetExport& told, const DatasetSpec& spec, KVStore& store) {
  if (told.from_backup || spec.keep_changes_ms == 0) return "";
  auto token = exports::TokenOfNow(store, spec.name);
  // An export that asks for no changes does not need the token: servers of MySQL whose settings do not let
  // them be followed, or do not answer, and stores without changes are no reason to export nothing.
  const bool has_none = absl::IsFailedPrecondition(token.status()) || absl::IsUnavailable(token.status()) ||
                        absl::IsUnimplemented(token.status());
  if (told.since.empty() && has_none) {
    fmt::print(stderr, "kv: warning: no export of changes can go on after this one: {}\n",
               std::string(token.status().message()));
    return "";
  }
  return OrFail(std::move(token));
}

/// Says of an error of reading changes what it means for an export of changes.
absl::Status Explained(const absl::Status& status, const std::string& since) {
  // Errors of a token name the argument `from` of ReadChanges.
  if (absl::IsInvalidArgument(status) && absl::StartsWith(status.message(), "from: ")) {
    return absl::InvalidArgumentError(fmt::format(
        "since: export '{}' is of a dataset that was dropped, or of another store: make a whole export ({})",
        since, std::string(status.message())));
  }
  if (!absl::IsOutOfRange(status)) return status;
  // The message ends with what a follower is to do, which is wrong for an export, so that part is cut off.
  std::string why(status.message());
  why.resize(std::min(why.find("; begin again"), why.size()));
  return absl::OutOfRangeError(fmt::format(
      "since: some of what was written since export '{}' is not kept any more: make a whole export; "
      "keep_changes_ms says for how long the dataset keeps its changes ({})",
      since, why));
}

/// The export that an earlier call with the token has made. Throws Failure.
std::optional<Manifest> FindEarlier(const ParquetExport& told, const Globals& globals, BlobStore& blobs) {
  if (told.token.empty()) return std::nullopt;
  auto earlier = OrFail(exports::FindExport(blobs, told.token));
  if (earlier) OrFail(exports::CheckSame(*earlier, RequestOf(told, globals, earlier->request.shape)));
  return earlier;
}

Manifest Export(const ParquetExport& told, const Globals& globals, BlobStore& blobs,
                const std::string& program) {
  OpenedStore opened(told, globals);
  const WholeCommand limit(globals);
  const DatasetSpec spec = OrFail(opened.store().GetDataset(told.dataset));
  const ExportRequest request = RequestOf(told, globals, spec.shape);
  std::optional<Manifest> base;
  if (!told.since.empty()) base = OrFail(exports::FindBase(blobs, request, spec));
  exports::ExportOptions options{.program = program,
                                 .token = told.token,
                                 .lanes = told.lanes,
                                 .changes = {},
                                 .max_versions = spec.max_versions,
                                 .ttl_ms = spec.ttl_ms};
  // Before anything is read: what is written meanwhile is then told by the export of changes after this one.
  options.changes = TokenAfter(told, spec, opened.store());
  std::unique_ptr<ExportSource> source;
  if (base) {
    source = exports::OpenChanges(opened.store(), spec, base->changes);
  } else {
    source = opened.Read(spec, request.options, exports::PartsFor(told.lanes));
    if (const auto stats = opened.store().GetStats(told.dataset); stats.ok()) {
      options.total_bytes = stats->approximate_bytes;
    }
  }
  ProgressBar bar("export " + told.dataset, "bytes");
  auto made = exports::ExportDataset(*source, request, blobs, options, ShowBytes(bar));
  if (!made.ok() && base) return OrFail(absl::StatusOr<Manifest>(Explained(made.status(), told.since)));
  return OrFail(std::move(made));
}

void PrintExported(const Manifest& manifest, const std::string& url, bool repeated, double seconds,
                   const Globals& globals) {
  const std::string folder = fmt::format("{}/{}", url, manifest.id);
  const std::string data = fmt::format("{}/{}", folder, manifest.data);
  const std::string& since = manifest.request.since;
  if (globals.json) {
    Json answer = {{"ok", true},
                   {"id", manifest.id},
                   {"url", folder},
                   {"data", data},
                   {"repeated", repeated},
                   {"snapshot", manifest.snapshot},
                   {"as_of_ms", manifest.as_of_ms},
                   {"form", manifest.form},
                   {"rows", manifest.TotalRows()},
                   {"files", manifest.files.size()},
                   {"bytes", manifest.TotalBytes()},
                   {"seconds", seconds}};
    if (!since.empty()) answer["since"] = since;
    return PrintJson(answer);
  }
  Print("export {} of {}{} as of {}: {} rows in {} files, {}{}\nread {}/*.parquet\n", manifest.id,
        since.empty() ? "" : fmt::format("what has changed since {} in ", since), manifest.request.dataset,
        UtcText(manifest.as_of_ms), manifest.TotalRows(), manifest.files.size(),
        SizeText(manifest.TotalBytes()),
        repeated ? "; an earlier call with this token has made it" : fmt::format(", in {:.1f} s", seconds),
        data);
}

}  // namespace

void ExportParquet(const ParquetExport& told, const Globals& globals) {
  const auto begun = std::chrono::steady_clock::now();
  if (told.from_backup && !globals.server.empty()) {
    WrongUsage(
        "--at, --from and --backup: not together with --server; a backup is read by this program, as --from "
        "or "
        "the backup.to of --config says");
  }
  if (!told.since.empty() && told.from_backup) {
    WrongUsage("--since: not together with --at, --from and --backup; changes are read from the store");
  }
  if (!told.token.empty()) OrFail(exports::CheckToken(told.token));
  const auto blobs = OpenExports(globals, told.to);
  std::string url = blobs->url();
  if (url.starts_with("file:")) url.erase(0, 5);
  if (const auto earlier = FindEarlier(told, globals, *blobs)) {
    return PrintExported(*earlier, url, /*repeated=*/true, 0, globals);
  }
  const std::string program = OrFail(exports::FindParquetProgram());
  const Manifest made = Export(told, globals, *blobs, program);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  PrintExported(made, url, /*repeated=*/false, seconds, globals);
}

}  // namespace kvstore::cli
