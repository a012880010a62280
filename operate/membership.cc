#include "operate/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/random_number.h"
#include "json/json_text.h"

namespace kvstore::operate {
namespace {

/// How often the leadership is tried for when others try as well.
constexpr int kLeaderAttempts = 3;
/// A leader that has said nothing for so long is replaced: it may be in a call that does not end.
constexpr uint64_t kHangsMs = 120'000;

/// Creates the nodes below which all processes write.
absl::Status MakeNodes(ZooKeeper& zookeeper, const std::string& root) {
  for (const char* const name : {"/operate", "/operate/members", "/operate/leader"}) {
    absl::Status made = zookeeper.Create(root + name, "", /*open=*/true);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  return absl::OkStatus();
}

/// Reads a field of what somebody has written; empty if it is none.
std::string TextField(const Json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

absl::StatusOr<std::vector<Member>> ReadMembers(ZooKeeper& zookeeper, const std::string& folder) {
  const auto ids = zookeeper.Children(folder);
  if (absl::IsNotFound(ids.status())) return std::vector<Member>();
  if (!ids.ok()) return ids.status();
  std::vector<Member> members;
  for (const std::string& id : *ids) {
    const auto node = zookeeper.Get(folder + "/" + id, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;  // It has just left.
    if (!node.ok()) return node.status();
    const Json json = Json::parse(node->data, nullptr, /*allow_exceptions=*/false);
    Member member{.id = id, .who = TextField(json, "who"), .said_ms = node->changed_ms};
    if (json.is_object() && json.contains("says")) member.says = json["says"];
    members.push_back(std::move(member));
  }
  std::sort(members.begin(), members.end(),
            [](const Member& one, const Member& other) { return one.id < other.id; });
  return members;
}

}  // namespace

Membership::Membership(ZooKeeper& zookeeper, std::string root, std::string who)
    : zookeeper_(zookeeper),
      root_(std::move(root)),
      who_(std::move(who)),
      id_(fmt::format("{:016x}", RandomNumber())) {}

absl::StatusOr<uint64_t> Membership::Say(const Json& says) {
  const std::string text = TextOf({{"who", who_}, {"says", says}});
  absl::Status said = zookeeper_.Set(PathOf(id_), text, /*version=*/-1);
  if (absl::IsNotFound(said)) {
    // The first time, or the session has ended.
    if (said = MakeNodes(zookeeper_, root_); !said.ok()) return said;
    said = zookeeper_.CreateEphemeral(PathOf(id_), text);
  }
  if (!said.ok()) return said;
  const auto node = zookeeper_.Get(PathOf(id_), /*watch=*/false);
  if (!node.ok()) return node.status();
  return node->changed_ms;
}

absl::StatusOr<std::vector<Member>> Membership::ReadOthers() {
  auto members = ReadMembers(zookeeper_, root_ + "/operate/members");
  if (members.ok()) std::erase_if(*members, [&](const Member& member) { return member.id == id_; });
  return members;
}

absl::Status Membership::FindLeader(Meeting& meeting) {
  for (int attempt = 0; attempt < kLeaderAttempts; ++attempt) {
    const auto node = zookeeper_.Get(LeaderPath(), /*watch=*/false);
    if (!node.ok()) return node.status();
    const Json leader = Json::parse(node->data, nullptr, /*allow_exceptions=*/false);
    const std::string id = TextField(leader, "id");
    const auto other = std::find_if(meeting.others.begin(), meeting.others.end(),
                                    [&](const Member& member) { return member.id == id; });
    // One that says nothing for long hangs, though its session lives.
    const bool hangs = other != meeting.others.end() && other->said_ms + kHangsMs < meeting.now_ms;
    if (id == id_ || (other != meeting.others.end() && !hangs)) {
      meeting.leads = id == id_;
      meeting.leader = meeting.leads ? who_ : other->who;
      meeting.still_leads = {
          .kind = ZooKeeperStep::Kind::kCheck, .path = LeaderPath(), .version = node->version};
      return absl::OkStatus();
    }
    const absl::Status taken =
        zookeeper_.Change({{.kind = ZooKeeperStep::Kind::kSet,
                            .path = LeaderPath(),
                            .data = TextOf({{"id", id_}, {"who", who_}}),
                            .version = node->version},
                           // Whoever leads must be seen to be there.
                           {.kind = ZooKeeperStep::Kind::kCheck, .path = PathOf(id_)}});
    if (!taken.ok() && !absl::IsFailedPrecondition(taken)) return taken;
    auto others = ReadOthers();
    if (!others.ok()) return others.status();
    meeting.others = *std::move(others);
  }
  return absl::OkStatus();
}

absl::StatusOr<Meeting> Membership::Meet(const Json& says) {
  Meeting meeting;
  const auto now = Say(says);
  if (!now.ok()) return now.status();
  meeting.now_ms = *now;
  auto others = ReadOthers();
  if (!others.ok()) return others.status();
  meeting.others = *std::move(others);
  if (auto status = FindLeader(meeting); !status.ok()) return status;
  return meeting;
}

void Membership::Leave() { zookeeper_.Delete(PathOf(id_)).IgnoreError(); }

absl::StatusOr<Meeting> ReadMeeting(ZooKeeper& zookeeper, const std::string& root) {
  Meeting meeting;
  auto members = ReadMembers(zookeeper, root + "/operate/members");
  if (!members.ok()) return members.status();
  meeting.others = *std::move(members);
  const auto node = zookeeper.Get(root + "/operate/leader", /*watch=*/false);
  if (absl::IsNotFound(node.status())) return meeting;
  if (!node.ok()) return node.status();
  const std::string id = TextField(Json::parse(node->data, nullptr, /*allow_exceptions=*/false), "id");
  for (const Member& member : meeting.others) {
    if (member.id == id) meeting.leader = member.who;
    meeting.now_ms = std::max(meeting.now_ms, member.said_ms);
  }
  return meeting;
}

}  // namespace kvstore::operate
