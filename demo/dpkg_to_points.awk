# Converts dpkg's log into the CSV that `kv report load` reads: how many packages were installed, upgraded or removed in an
# hour, and which, by action and architecture.
#
#   2025-06-24 14:36:25 upgrade libsystemd0:amd64 252.36 252.38   ->  2025-06-24T14:00:00Z,upgrade,amd64,1,libsystemd0
$3 == "install" || $3 == "upgrade" || $3 == "remove" || $3 == "purge" {
  split($4, name, ":")
  group = $1 "T" substr($2, 1, 2) ":00:00Z," $3 "," (name[2] == "" ? "none" : name[2])
  ++events[group]
  packages[group] = packages[group] (packages[group] == "" ? "" : ";") name[1]
}
END {
  print "time,action,architecture,events,packages"
  for (group in events) print group "," events[group] "," packages[group]
}
