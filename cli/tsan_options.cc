/// The options of builds with ThreadSanitizer: a migration's step on the embedded store holds all 1,024 row
/// locks at once, and the sanitizer's detector of deadlocks gives up beyond 64.
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_options() { return "detect_deadlocks=0"; }
