#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Errors as Redis clients know them: a word in capitals, by which programs tell them apart, and a sentence.
namespace kvstore::server::resp {

/// Returns the error's text. The word is the one of WithWord, or follows from what the error means:
///
///   NOAUTH     the caller has not authenticated, or its token is no longer valid: send AUTH first
///   NOPERM     the caller lacks the right
///   BUSY       the call was turned away for lack of room, and may be repeated as it is
///   TRYAGAIN   nothing was done, because a host cannot be reached, the server stops, or the dataset migrates
///   INDOUBT    a write may or may not have happened
///   ERR        everything else
std::string ErrorText(const absl::Status& error);

/// Returns the same error with a word of its own, which replaces what would follow from the error.
///
/// word  lives for ever.
absl::Status WithWord(absl::Status error, const char* word);

/// Returns the error of a command on a dataset that holds something else.
absl::Status WrongTypeError(std::string_view message);
/// Returns the error for an option that the command does not have, or not in this place.
absl::Status SyntaxError();
/// Returns the error of an argument that should be a whole number.
absl::Status NotAnIntegerError();

/// Returned by a command that would take too long on a thread that serves connections. A worker then runs the
/// command again from its beginning; clients never see this error.
absl::Status TooLongHereError();
bool IsTooLongHere(const absl::Status& error);

}  // namespace kvstore::server::resp
