# Converts dpkg's log into events of packages, as JSON lines for `kv import`: row = package, column = action, timestamp = time
# in ms, value = version. dpkg logs seconds; the events of one second get different milliseconds, in their order.
#
#   2025-06-24 14:36:25 upgrade libsystemd0:amd64 252.36 252.38   ->  upgrade at ...  = 252.38
#   2025-06-24 14:36:25 status unpacked libsystemd0:amd64 252.38  ->  status:unpacked = 252.38
function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
  return "\"" text "\""
}
{
  action = $3
  package = $4
  version = $5
  if (action == "status") {
    action = "status:" $4
    package = $5
    version = $6
  } else if (action == "install" || action == "upgrade") {
    version = $6
  } else if (action != "configure" && action != "trigproc" && action != "remove" && action != "purge") {
    next
  }
  sub(/:.*/, "", package)
  time = $1 " " $2
  gsub(/[-:]/, " ", time)
  seconds = mktime(time)
  if (seconds < 0 || version == "") next
  order = seconds == last ? order + 1 : 0
  last = seconds
  # %.0f: numbers of this size are too large for %d in some versions of awk.
  printf "{\"row\":%s,\"items\":[{\"column\":%s,\"value\":%s,\"timestamp\":%.0f}]}\n", quoted(package), quoted(action),
    quoted(version), seconds * 1000 + order
}
