/* The protocol of docs/migrating.md. There are two sides of two partitions with one unit each; a client that writes and
 * one that reads, whose routes may be stale; a worker that cuts over and back; an earlier worker that was paused and
 * continues at any time; and one failover of the target before it serves, which undoes what was copied there and its
 * epoch. tests/model/run searches all states, and those of mutants, each of which lacks one rule (-DNAME):
 *
 *   REMOVE_UNREAD         a drain removes entries that it has not listed
 *   READ_BEFORE_LIST      a drain reads a unit before it lists its entries
 *   DRAIN_BEFORE_FREEZE   the log is found empty, and then writes are frozen
 *   PUTS_ONLY             deletes are not recorded
 *   READ_AFTER_MOVED      clients may read the source when it has moved
 *   OPEN_WITHOUT_CAPTURE  writes to the side that has just begun to serve are not recorded
 *   NO_FENCE              a replace does not check the epoch
 *   IDS_RESTART           IDs of entries begin anew when the log is empty, and a removal does not check the epoch
 *   OPEN_BEFORE_MOVED     the target serves while the source still does
 *   OPEN_UNSEEN           the target serves without a check that it is still what was compared
 *
 * With -DCALM there is no failover: cutover.pml has failovers, and only the long form searches both together.
 *
 * A unit's content is the number of its last write; writes with even numbers are deletes, which matters for PUTS_ONLY.
 */

#define PARTS 2
#ifndef WRITES
#define WRITES 2
#endif

/* EndpointState */
#define ABSENT 0
#define IMPORTING 1
#define SERVING 2
#define FROZEN 3
#define MOVED 4

#define AT(side, part) ((side) * PARTS + (part))

byte state[4];
byte data[4];     /* the number of the unit's last write */
bool capture[4];
byte dirty[4];    /* the log: a bit for each entry */
byte next_id[4];
byte epoch[4];
byte catalog;     /* the side that clients try first */
byte issued[PARTS];
byte acked[PARTS];
byte boot;        /* of the target: changes with its failover */
bool ended;

/* A client's write, atomic in the backend. */
inline record(side, part, number) {
  if
#ifdef PUTS_ONLY
  :: capture[AT(side, part)] && (number % 2 == 1) ->
#else
  :: capture[AT(side, part)] ->
#endif
#ifdef IDS_RESTART
    if
    :: dirty[AT(side, part)] == 0 -> next_id[AT(side, part)] = 0
    :: else
    fi;
#endif
    dirty[AT(side, part)] = dirty[AT(side, part)] | (1 << next_id[AT(side, part)]);
    next_id[AT(side, part)]++
  :: else
  fi
}

proctype Writer() {
  byte part, side, number, left = WRITES;
  do
  :: left > 0 ->
    left--;
    if
    :: part = 0
    :: part = 1
    fi;
    atomic { issued[part]++; number = issued[part] };
    side = catalog;
    do
    :: atomic {
         state[AT(side, part)] == SERVING ->
         data[AT(side, part)] = number;
         record(side, part, number);
         acked[part] = number;
         break
       }
    :: state[AT(side, part)] != SERVING -> side = 1 - side /* the client tries the other side */
    od
  :: left == 0 -> break
  od
}

proctype Reader(byte part) {
  byte side, least, last, left = 2;
  do
  :: left > 0 ->
    left--;
    atomic { least = acked[part]; side = catalog };
    if
    :: side = 0
    :: side = 1
    fi;
    do
    :: atomic {
#ifdef READ_AFTER_MOVED
         state[AT(side, part)] == SERVING || state[AT(side, part)] == FROZEN || state[AT(side, part)] == MOVED ->
#else
         state[AT(side, part)] == SERVING || state[AT(side, part)] == FROZEN ->
#endif
         assert(data[AT(side, part)] >= least);
         assert(data[AT(side, part)] >= last);
         last = data[AT(side, part)];
         break
       }
    :: state[AT(side, part)] != SERVING && state[AT(side, part)] != FROZEN -> side = 1 - side
    od
  :: left == 0 -> break
  od
}

/* A replace, with its fence, atomic in the backend. */
inline replace(side, part, by, content) {
  atomic {
    if
#ifdef NO_FENCE
    :: state[AT(side, part)] == IMPORTING || state[AT(side, part)] == MOVED ->
#else
    :: epoch[AT(side, part)] == by && (state[AT(side, part)] == IMPORTING || state[AT(side, part)] == MOVED) ->
#endif
      data[AT(side, part)] = content
    :: else
    fi
  }
}

inline remove(side, part, by, ids) {
  atomic {
    if
#ifdef IDS_RESTART
    :: true ->
#else
    :: epoch[AT(side, part)] == by ->
#endif
#ifdef REMOVE_UNREAD
      dirty[AT(side, part)] = 0
#else
      dirty[AT(side, part)] = dirty[AT(side, part)] & (255 - ids)
#endif
    :: else
    fi
  }
}

/* Copies the units that are in one partition's log. */
inline drain(from, part, by) {
#ifdef READ_BEFORE_LIST
  content = data[AT(from, part)];
  ids = dirty[AT(from, part)];
#else
  ids = dirty[AT(from, part)];
  content = data[AT(from, part)];
#endif
  if
  :: ids != 0 ->
    replace(1 - from, part, by, content);
    remove(from, part, by, ids)
  :: else
  fi
}

inline drain_all(from, by) {
  do
  :: dirty[AT(from, 0)] != 0 -> drain(from, 0, by)
  :: dirty[AT(from, 1)] != 0 -> drain(from, 1, by)
  :: dirty[AT(from, 0)] == 0 && dirty[AT(from, 1)] == 0 -> break
  od
}

inline transition(side, part, to, captures) {
  atomic { state[AT(side, part)] = to; capture[AT(side, part)] = captures }
}

/* Sets `opened` if the other side serves at its end; otherwise `from` still does. */
inline cutover(from, by) {
#ifdef DRAIN_BEFORE_FREEZE
  drain_all(from, by);
#endif
  transition(from, 0, FROZEN, 1);
  transition(from, 1, FROZEN, 1);
#ifndef DRAIN_BEFORE_FREEZE
  drain_all(from, by);
#endif
#ifdef OPEN_BEFORE_MOVED
  transition(1 - from, 0, SERVING, 1);
  transition(1 - from, 1, SERVING, 1);
  transition(from, 0, SERVING, 1);
#endif
  transition(from, 0, MOVED, 1);
  transition(from, 1, MOVED, 1);
  atomic {
#ifdef OPEN_UNSEEN
    opened = true;
#else
    opened = (boot == compared);
#endif
    if
#ifdef OPEN_WITHOUT_CAPTURE
    :: opened -> state[AT(1 - from, 0)] = SERVING; capture[AT(1 - from, 0)] = 0
#else
    :: opened -> state[AT(1 - from, 0)] = SERVING; capture[AT(1 - from, 0)] = 1
#endif
    :: else
    fi
  }
  if
  :: opened ->
#ifdef OPEN_WITHOUT_CAPTURE
    transition(1 - from, 1, SERVING, 0);
    capture[AT(1 - from, 0)] = 1;
    capture[AT(1 - from, 1)] = 1;
#else
    transition(1 - from, 1, SERVING, 1);
#endif
    catalog = 1 - from
  :: else ->
    transition(from, 0, SERVING, 1);
    transition(from, 1, SERVING, 1)
  fi
}

/* The earlier worker: it has epoch 1, lists and reads the first partition, and pauses at any of its steps. */
proctype Paused() {
  byte content, ids;
  capture[AT(0, 0)] -> skip;
  drain(0, 0, 1)
}

/* The worker: its epoch is 2, and 3 when it has to begin again. */
proctype Worker() {
  byte content, ids, part, by = 2, compared;
  bool opened;
  do
  :: compared = boot;
    /* The worker raises the epochs of all partitions on both sides before anything else. */
    epoch[AT(0, 0)] = by;
    epoch[AT(0, 1)] = by;
    epoch[AT(1, 0)] = by;
    epoch[AT(1, 1)] = by;
    /* It backfills what the earlier worker may not have copied. */
    for (part : 0 .. PARTS - 1) {
      content = data[AT(0, part)];
      replace(1, part, by, content)
    }
    /* It drains any number of times, or never. */
    do
    :: drain(0, 0, by)
    :: drain(0, 1, by)
    :: break
    od;
    cutover(0, by);
    if
    :: opened -> break
    :: else -> by++
    fi
  od;
  do
  :: drain(1, 0, by)
  :: drain(1, 1, by)
  :: break
  od;
  if
  :: cutover(1, by)   /* back */
  :: skip
  fi;
  /* When all writes have ended and the log is empty, the copy equals the truth. */
  ended && (issued[0] + issued[1] == WRITES) -> skip;
  drain_all(catalog, by);
  assert(data[AT(0, 0)] == data[AT(1, 0)]);
  assert(data[AT(0, 1)] == data[AT(1, 1)]);
  assert(data[AT(catalog, 0)] == issued[0] && data[AT(catalog, 1)] == issued[1])
}

/* The target's replica is promoted, which has nothing of what was copied. */
proctype Failover() {
end:
  atomic {
    state[AT(1, 0)] == IMPORTING && state[AT(1, 1)] == IMPORTING && ! ended ->
    data[AT(1, 0)] = 0; data[AT(1, 1)] = 0;
    epoch[AT(1, 0)] = 1; epoch[AT(1, 1)] = 1;
    boot++
  }
}

init {
  atomic {
    /* The earlier worker has come so far that the target is importing and writes are recorded. */
    state[AT(0, 0)] = SERVING; state[AT(0, 1)] = SERVING;
    state[AT(1, 0)] = IMPORTING; state[AT(1, 1)] = IMPORTING;
    capture[AT(0, 0)] = 1; capture[AT(0, 1)] = 1;
    epoch[AT(0, 0)] = 1; epoch[AT(0, 1)] = 1; epoch[AT(1, 0)] = 1; epoch[AT(1, 1)] = 1;
#ifndef CALM
    run Failover();
#endif
    run Writer(); run Reader(0); run Paused(); run Worker()
  };
  _nr_pr == 2 || (acked[0] + acked[1] == WRITES) -> ended = true
}
