#include "backup/manifest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "blobstore/sha256.h"
#include "tests/support/status_matchers.h"

/// The stored form of manifests, and what is refused.
namespace kvstore::backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;

constexpr char kId[] = "20261124T031459Z-1a2b3c4d";

std::string Checksum(char digit) { return std::string(64, digit); }

Manifest Example() {
  return {.id = kId,
          .began_ms = 1000,
          .finished_ms = 2000,
          .host = "ann@ops1, process 4711",
          .version = "0.1.0",
          .engine = "rocksdb 7.8.3",
          .sequence = 18'446'744'073'709'551'615u,
          .sent_objects = 2,
          .sent_bytes = 33,
          .files = {{"KVSTORE", "objects/file-" + Checksum('a'), 17, Checksum('a')},
                    {"catalog.json", "objects/file-" + Checksum('b'), 26, Checksum('b')},
                    {"rocksdb/000010.sst", "objects/table-0123", 1u << 30, Checksum('c') + "-16"},
                    {"rocksdb/CURRENT", "objects/file-" + Checksum('d'), 16, Checksum('d')}}};
}

/// The manifest with this first line.
std::string WithChecksum(const std::string& line) {
  return fmt::format("{}\n{{\"sha256\":\"{}\"}}\n", line, Hex(Sha256Of(line)));
}

/// The example, in whose first line `from` has been replaced by `to`.
std::string Changed(const std::string& from, const std::string& to) {
  std::string line = EncodeManifest(Example());
  line.erase(line.find('\n'));
  const size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) line.replace(at, from.size(), to);
  return WithChecksum(line);
}

// Backups that were made by any version must be restored by all later ones, so this text never changes.
TEST(BackupManifest, ItsFormIsPinned) {
  const std::string a = Checksum('a');
  const std::string b = Checksum('b');
  const std::string c = Checksum('c');
  const std::string d = Checksum('d');
  const std::string line =
      R"({"began_ms":1000,"engine":"rocksdb 7.8.3","files":[)"
      R"({"blob":"objects/file-)" +
      a + R"(","checksum":")" + a +
      R"(","path":"KVSTORE","size":17},)"
      R"({"blob":"objects/file-)" +
      b + R"(","checksum":")" + b +
      R"(","path":"catalog.json","size":26},)"
      R"({"blob":"objects/table-0123","checksum":")" +
      c +
      R"(-16","path":"rocksdb/000010.sst","size":1073741824},)"
      R"({"blob":"objects/file-)" +
      d + R"(","checksum":")" + d +
      R"(","path":"rocksdb/CURRENT","size":16}],)"
      R"("finished_ms":2000,"format":1,"host":"ann@ops1, process 4711","id":"20261124T031459Z-1a2b3c4d",)"
      R"("kind":"embedded","sent_bytes":33,"sent_objects":2,"sequence":18446744073709551615,"version":"0.1.0"})";
  EXPECT_EQ(EncodeManifest(Example()), WithChecksum(line));
  ASSERT_OK_AND_ASSIGN(const Manifest decoded, DecodeManifest(WithChecksum(line), kId));
  EXPECT_EQ(decoded, Example());
}

TEST(BackupManifest, AnyChangedByteIsFound) {
  const std::string text = EncodeManifest(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto decoded = DecodeManifest(changed, kId);
    // A change of white space after the second line means nothing.
    if (i + 1 == text.size()) continue;
    EXPECT_THAT(decoded, FailsWith(StatusCode::kDataLoss, "backups/20261124T031459Z-1a2b3c4d.json: ")) << i;
  }
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_THAT(DecodeManifest(text.substr(0, size), kId), FailsWith(StatusCode::kDataLoss, "")) << size;
  }
}

TEST(BackupManifest, PathsThatLeaveTheFolderAreRefused) {
  for (const char* path : {"../x", "/etc/passwd", "a/../b", "a//b", "a/", "", ".", "..", "a/./b", ".ssh/x",
                           R"(a\\b)", "a b", R"(a\u0000b)"}) {
    const std::string field = fmt::format(R"("path":"{}")", path);
    EXPECT_THAT(DecodeManifest(Changed(R"("path":"rocksdb/000010.sst")", field), kId),
                FailsWith(StatusCode::kDataLoss, "files[2].path: is not a path below a folder"))
        << path;
  }
}

TEST(BackupManifest, WhatContradictsItselfIsRefused) {
  const auto refused = [](const std::string& from, const std::string& to, const std::string& problem) {
    EXPECT_THAT(DecodeManifest(Changed(from, to), kId), FailsWith(StatusCode::kDataLoss, problem)) << to;
  };
  refused("rocksdb/000010.sst", "catalog.json", "files: catalog.json is there twice");
  refused("rocksdb/000010.sst", "catalog.json/x", "files: catalog.json is a file and a folder");
  refused("rocksdb/CURRENT", "rocksdb/OTHER", "files: rocksdb/CURRENT is missing");
  refused("\"KVSTORE\"", "\"OTHER\"", "files: KVSTORE is missing");
  refused("\"id\":\"20261124", "\"id\":\"20261125", "id: is that of another backup");
  refused("objects/table-0123", "backups/x.json", "files[2].blob: is not the name of an object");
  refused("objects/table-0123", "objects/../x", "files[2].blob");
  refused("-16\"", "-\"", "files[2].checksum: is not a checksum");
  refused(Checksum('a') + "\",\"path", "aa\",\"path", "files[0].checksum");
  refused("\"size\":17", "\"size\":-1", "files[0].size");
  refused("\"size\":17", "\"size\":99999999999999999", "files[0].size");
  refused("\"size\":17", "\"other\":17", "files[0].");
  refused("\"files\":[", "\"files\":[7,", "files[0]");
  refused("\"began_ms\":1000,", "", "began_ms");
}

TEST(BackupManifest, FieldsOfALaterVersionAreIgnored) {
  const std::string later = Changed(R"("format":1,)", R"("format":1,"added_later":{"x":[1]},)");
  ASSERT_OK_AND_ASSIGN(const Manifest decoded, DecodeManifest(later, kId));
  EXPECT_EQ(decoded, Example());
}

TEST(BackupManifest, OneOfANewerVersionIsNotTakenForDamaged) {
  for (const char* newer : {R"("format":2,)", R"("format":2,"segments":[],)"}) {
    EXPECT_THAT(DecodeManifest(Changed(R"("format":1,)", newer), kId),
                FailsWith(StatusCode::kFailedPrecondition, "a newer version of KVStore wrote it"));
  }
  EXPECT_THAT(DecodeManifest(Changed(R"("kind":"embedded")", R"("kind":"units")"), kId),
              FailsWith(StatusCode::kFailedPrecondition, "a newer version"));
}

Manifest ExampleOfDataset() {
  return {.id = kId,
          .began_ms = 1000,
          .finished_ms = 2000,
          .host = "ann@ops1, process 4711",
          .version = "0.1.0",
          .engine = "units",
          .sent_objects = 1,
          .sent_bytes = 33,
          .files = {{"units/00000-00000", "objects/file-" + Checksum('a'), 33, Checksum('a')}},
          .dataset = DatasetPart{.spec = {.name = "pins",
                                          .shape = Shape::kObjects,
                                          .backend = "mysql",
                                          .type = 5,
                                          .engine = "myrocks",
                                          .incarnation = 18'446'744'073'709'551'615u,
                                          .table = "pins@2"},
                                 .as_of_ms = 1500,
                                 .units = 7,
                                 .timestamp = 0,
                                 .next_local_ids = {.shards = {{0, 8}, {65'535, 2}}}}};
}

// Never changes, as the one above.
TEST(BackupManifest, TheFormOfADatasetsIsPinned) {
  const std::string a = Checksum('a');
  const std::string line =
      R"({"began_ms":1000,"dataset":{"as_of_ms":1500,"incarnation":"18446744073709551615",)"
      R"("next_local_ids":{"0":8,"65535":2},"settings":{"backend":"mysql","blob_threshold":0,"compression":"lz4",)"
      R"("dataset":"pins","durability":"process","engine":"myrocks","max_versions":1,"shape":"objects",)"
      R"("table":"pins@2","ttl_ms":0,"type":5},"timestamp":0,"units":7},"engine":"units","files":[)"
      R"({"blob":"objects/file-)" +
      a + R"(","checksum":")" + a +
      R"(","path":"units/00000-00000","size":33}],"finished_ms":2000,"format":1,"host":"ann@ops1, process 4711",)"
      R"("id":"20261124T031459Z-1a2b3c4d","kind":"dataset","sent_bytes":33,"sent_objects":1,"sequence":0,)"
      R"("version":"0.1.0"})";
  EXPECT_EQ(EncodeManifest(ExampleOfDataset()), WithChecksum(line));
  ASSERT_OK_AND_ASSIGN(const Manifest read, DecodeManifest(WithChecksum(line), kId));
  EXPECT_EQ(read, ExampleOfDataset());
}

TEST(BackupManifest, TheFloorOfIdsThatARepairHasSetIsKept) {
  Manifest manifest = ExampleOfDataset();
  manifest.dataset->next_local_ids.others = 900;
  const std::string line = EncodeManifest(manifest);
  EXPECT_THAT(line, ::testing::HasSubstr(R"("next_local_id_of_others":900,)"));
  ASSERT_OK_AND_ASSIGN(const Manifest read, DecodeManifest(line, kId));
  EXPECT_EQ(read, manifest);
}

TEST(BackupManifest, WhatIsWrongWithADatasetIsTold) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string line = EncodeManifest(ExampleOfDataset());
    line.erase(line.find('\n'));
    const size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) line.replace(at, from.size(), to);
    return DecodeManifest(WithChecksum(line), kId);
  };
  EXPECT_THAT(changed(R"("units":7)", R"("units":-7)"),
              FailsWith(StatusCode::kDataLoss, "dataset.units: must be"));
  EXPECT_THAT(changed(R"("65535":2)", R"("65536":2)"),
              FailsWith(StatusCode::kDataLoss, "dataset.next_local_ids.65536"));
  EXPECT_THAT(changed(R"("65535":2)", R"("65535":68719476737)"),
              FailsWith(StatusCode::kDataLoss, "dataset.next_local_ids.65535: must be"));
  EXPECT_THAT(changed(R"("shape":"objects")", R"("shape":"pins")"),
              FailsWith(StatusCode::kDataLoss, "dataset.settings.shape: must be"));
  EXPECT_THAT(changed(R"("dataset":"pins")", R"("dataset":"../pins")"),
              FailsWith(StatusCode::kDataLoss, "dataset"));
  EXPECT_THAT(changed(R"("kind":"dataset")", R"("kind":"embedded")"),
              FailsWith(StatusCode::kDataLoss, "KVSTORE is missing"));
  EXPECT_THAT(changed(R"("kind":"dataset")", R"("kind":"fleet")"),
              FailsWith(StatusCode::kFailedPrecondition, "of the kind 'fleet'"));
}

Manifest ExampleOfServer() {
  return {.id = kId,
          .began_ms = 1000,
          .finished_ms = 2000,
          .host = "root@MySQL001B, process 4711",
          .version = "0.1.0",
          .engine = "mariadb 10.11.19-MariaDB",
          .sent_objects = 1,
          .sent_bytes = 33,
          .files = {{"stream/000001", "objects/file-" + Checksum('a'), 33, Checksum('a')},
                    {"zookeeper.json", "objects/file-" + Checksum('b'), 44, Checksum('b')}},
          .server = ServerPart{
              .host = "MySQL001B",
              .master = "MySQL001A",
              .slave = "MySQL001B",
              .domain = 1,
              .gtid = "1-1-17,2-3-4",
              .shards = {{ShardSpace::kId, 0, 511}, {ShardSpace::kId, 600, 600}, {ShardSpace::kMod, 0, 7}},
              .bytes = 1'000'000}};
}

// Never changes, as those above.
TEST(BackupManifest, TheFormOfAServersIsPinned) {
  const std::string a = Checksum('a');
  const std::string b = Checksum('b');
  const std::string line =
      R"({"began_ms":1000,"engine":"mariadb 10.11.19-MariaDB","files":[{"blob":"objects/file-)" + a +
      R"(","checksum":")" + a + R"(","path":"stream/000001","size":33},{"blob":"objects/file-)" + b +
      R"(","checksum":")" + b +
      R"(","path":"zookeeper.json","size":44}],"finished_ms":2000,"format":1,"host":"root@MySQL001B, process 4711",)"
      R"("id":"20261124T031459Z-1a2b3c4d","kind":"server","sent_bytes":33,"sent_objects":1,"sequence":0,)"
      R"("server":{"bytes":1000000,"domain":1,"gtid":"1-1-17,2-3-4","host":"MySQL001B","master":"MySQL001A",)"
      R"("shards":{"db":[[0,511],[600,600]],"mod":[[0,7]]},"slave":"MySQL001B"},"version":"0.1.0"})";
  EXPECT_EQ(EncodeManifest(ExampleOfServer()), WithChecksum(line));
  ASSERT_OK_AND_ASSIGN(const Manifest read, DecodeManifest(WithChecksum(line), kId));
  EXPECT_EQ(read, ExampleOfServer());
}

TEST(BackupManifest, WhatIsWrongWithAServerIsTold) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string line = EncodeManifest(ExampleOfServer());
    line.erase(line.find('\n'));
    const size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) line.replace(at, from.size(), to);
    return DecodeManifest(WithChecksum(line), kId);
  };
  for (const char* const ranges : {"[[7,0]]", "[[0,65536]]", "[[0]]", "[7]", R"([["0",7]])"}) {
    EXPECT_THAT(changed("[[0,7]]", ranges),
                FailsWith(StatusCode::kDataLoss, "server.shards.mod: must be ranges of shards"))
        << ranges;
  }
  EXPECT_THAT(changed(R"("domain":1)", R"("domain":-1)"), FailsWith(StatusCode::kDataLoss, "server.domain"));
  EXPECT_THAT(changed(R"("gtid":"1-1-17,2-3-4",)", ""), FailsWith(StatusCode::kDataLoss, "server.gtid"));
  EXPECT_THAT(changed(R"("kind":"server")", R"("kind":"embedded")"),
              FailsWith(StatusCode::kDataLoss, "KVSTORE is missing"));
}

}  // namespace
}  // namespace kvstore::backup
