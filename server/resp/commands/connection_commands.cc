#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/words.h"

/// Commands about the connection.
namespace kvstore::server::resp {
namespace {

constexpr std::string_view kDefaultUser = "default";
/// A connection keeps its name without counting it.
constexpr size_t kMaxNameBytes = 64;

/// Returns whether the text can be a client's name: printable ASCII without blanks, as in Redis.
bool IsName(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

/// Returns an error for a text that cannot be a client's name.
absl::Status CheckName(std::string_view text) {
  if (text.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        fmt::format("Client names have at most {} bytes, this one has {}", kMaxNameBytes, text.size()));
  }
  if (IsName(text)) return absl::OkStatus();
  return absl::InvalidArgumentError("Client names cannot contain spaces, newlines or special characters.");
}

void Ping(Session&, Arguments arguments, Encoder& out) {
  if (arguments.size() > 2) return out.Error("ERR wrong number of arguments for 'ping' command");
  if (arguments.size() == 2) return out.Bulk(arguments[1]);
  out.Simple("PONG");
}

void Echo(Session&, Arguments arguments, Encoder& out) { out.Bulk(arguments[1]); }

void Quit(Session& session, Arguments, Encoder& out) {
  out.Ok();
  session.Quit();
}

void Select(Session&, Arguments arguments, Encoder& out) {
  const auto database = ParseSigned(arguments[1]);
  if (!database) return out.Error("ERR value is not an integer or out of range");
  if (*database != 0)
    return out.Error("ERR DB index is out of range: there is only 0, which has all datasets");
  out.Ok();
}

void Auth(Session& session, Arguments arguments, Encoder& out) {
  if (arguments.size() > 3) return out.Error(ErrorText(SyntaxError()));
  const bool named = arguments.size() == 3;
  const auto status = session.Authenticate(named ? arguments[1] : kDefaultUser, arguments.back());
  if (!status.ok()) return out.Error(ErrorText(status));
  out.Ok();
}

/// The options of HELLO.
struct HelloOptions {
  std::string_view user;
  std::string_view token;
  bool authenticates = false;
  std::string_view name;
  bool names = false;
};

absl::Status ReadHello(Arguments arguments, HelloOptions& options) {
  for (size_t i = 2; i < arguments.size();) {
    const size_t left = arguments.size() - i - 1;
    if (Is(arguments[i], "auth") && left >= 2) {
      options.authenticates = true;
      options.user = arguments[i + 1];
      options.token = arguments[i + 2];
      i += 3;
    } else if (Is(arguments[i], "setname") && left >= 1) {
      options.names = true;
      options.name = arguments[i + 1];
      if (auto status = CheckName(options.name); !status.ok()) return status;
      i += 2;
    } else {
      return absl::InvalidArgumentError("Syntax error in HELLO");
    }
  }
  return absl::OkStatus();
}

void Hello(Session& session, Arguments arguments, Encoder& out) {
  Version version = session.version();
  if (arguments.size() > 1) {
    const auto wanted = ParseUnsigned(arguments[1]);
    if (wanted != 2u && wanted != 3u) return out.Error("NOPROTO unsupported protocol version");
    version = *wanted == 2 ? Version::kResp2 : Version::kResp3;
  }
  HelloOptions options;
  if (auto status = ReadHello(arguments, options); !status.ok()) return out.Error(ErrorText(status));
  if (options.authenticates) {
    if (auto status = session.Authenticate(options.user, options.token); !status.ok())
      return out.Error(ErrorText(status));
  }
  if (!session.is_known()) {
    return out.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "
        "<user> <pass> option can be used to authenticate the client and select the RESP protocol version at "
        "the same time");
  }
  if (options.names) session.SetName(options.name);
  session.SetVersion(version);
  out.SetVersion(version);
  out.Map(7);
  out.Bulk("server");
  out.Bulk("kvstore");
  out.Bulk("version");
  out.Bulk(kRedisVersion);
  out.Bulk("proto");
  out.Integer(static_cast<int64_t>(version));
  out.Bulk("id");
  out.Integer(static_cast<int64_t>(session.id()));
  out.Bulk("mode");
  out.Bulk("standalone");
  out.Bulk("role");
  out.Bulk("master");
  out.Bulk("modules");
  out.Array(0);
}

void Client(Session& session, Arguments arguments, Encoder& out) {
  const std::string_view what = arguments[1];
  if (Is(what, "id") && arguments.size() == 2) {
    out.Integer(static_cast<int64_t>(session.id()));
  } else if (Is(what, "info") && arguments.size() == 2) {
    out.Verbatim(session.Describe());
  } else if (Is(what, "getname") && arguments.size() == 2) {
    if (session.name().empty()) return out.Null();
    out.Bulk(session.name());
  } else if (Is(what, "setname") && arguments.size() == 3) {
    if (const auto status = CheckName(arguments[2]); !status.ok()) return out.Error(ErrorText(status));
    session.SetName(arguments[2]);
    out.Ok();
  } else if (Is(what, "setinfo") && arguments.size() == 4) {
    const std::string part = LowerCase(arguments[2]);
    if (part != "lib-name" && part != "lib-ver") return out.Error("ERR Unrecognized option");
    if (!IsName(arguments[3])) {
      return out.Error(fmt::format("ERR {} cannot contain spaces, newlines or special characters.", part));
    }
    session.SetLibrary(part, arguments[3]);
    out.Ok();
  } else {
    out.Error(
        "ERR CLIENT has the subcommands ID, INFO, GETNAME, SETNAME name, SETINFO LIB-NAME name, SETINFO "
        "LIB-VER "
        "version");
  }
}

}  // namespace

std::span<const Command> ConnectionCommands() {
  static constexpr std::array kCommands = {
      Command{.name = "auth",
              .arity = -2,
              .handler = Local{.answer = &Auth, .for_strangers = true},
              .group = "connection",
              .words = "[user] token",
              .summary = "Identifies the caller by a token, as the file of server.tokens lists them"},
      Command{.name = "client",
              .arity = -2,
              .handler = Local{.answer = &Client},
              .group = "connection",
              .words = "ID | INFO | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER value",
              .summary = "Describes and names the connection"},
      Command{.name = "echo",
              .arity = 2,
              .handler = Local{.answer = &Echo},
              .group = "connection",
              .words = "message",
              .summary = "Returns the message"},
      Command{.name = "hello",
              .arity = -1,
              .handler = Local{.answer = &Hello, .for_strangers = true},
              .group = "connection",
              .words = "[2|3 [AUTH user token] [SETNAME name]]",
              .summary = "Chooses the version of the protocol, and describes the server"},
      Command{.name = "ping",
              .arity = -1,
              .handler = Local{.answer = &Ping},
              .group = "connection",
              .words = "[message]",
              .summary = "Returns PONG, or the message"},
      Command{.name = "quit",
              .arity = -1,
              .handler = Local{.answer = &Quit, .for_strangers = true},
              .group = "connection",
              .words = "",
              .summary = "Ends the connection"},
      Command{.name = "select",
              .arity = 2,
              .handler = Local{.answer = &Select},
              .group = "connection",
              .words = "0",
              .summary = "Accepts the only database there is, which has all datasets"},
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
